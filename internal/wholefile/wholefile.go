// Package wholefile writes files so that each is complete or absent, also after a crash of the process or the machine,
// and reads files that may not have more than a number of bytes.
package wholefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Read reads a file, or what comes out of a pipe. A file of more than most bytes is an error.
func Read(path string, most int64) (_ []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return b, err
}

// Write writes a file that only its owner may read (mode 0600). The bytes are on the disk before the file has its name,
// a file that had the name is replaced in one step, and the name is on the disk when Write returns. Where Write fails,
// the name has the old file, or, if only the name could not be brought to the disk, the new one.
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
	return syncFolder(filepath.Dir(path))
}

// Rename gives a file or a folder, whose content is on the disk, another name in the same folder. The name is on the
// disk when Rename returns.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

// syncFolder is SyncFolder, whose calls tests watch.
var syncFolder = SyncFolder

// SyncFolder brings the names in a folder to the disk.
func SyncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// CheckFolderOf returns an error if no file can be made in the folder of a path. It is for an output that takes hours.
func CheckFolderOf(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".millrace-*.partial")
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = failed.Err // without the temporary name
	}
	if err != nil {
		return fmt.Errorf("%s: no file can be made in its folder: %w", path, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
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
