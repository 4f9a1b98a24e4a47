// Package wholefile writes files so that each is complete or absent, also after a crash of the process or the machine.
package wholefile

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// Write writes a file that only its owner may read (mode 0600). The bytes are on the disk before the file has its name,
// and a file that had the name is replaced in one step. Where Write fails, that file is as it was.
func Write(path string, b []byte) error { return writeMode(path, b, 0o600) }

// WritePublic writes a file that everybody may read (mode 0644), as Write does.
func WritePublic(path string, b []byte) error { return writeMode(path, b, 0o644) }

func writeMode(path string, b []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// WriteJSON writes a value as indented JSON, as Write does. It makes the file's folder if there is none (mode 0700).
func WriteJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return Write(path, append(b, '\n'))
}
