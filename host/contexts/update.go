package contexts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Update changes the file: it reads it, has change change it, and replaces it, unless change fails or changes nothing. The file is
// for its owner alone (0600), and so is its folder if it is made here.
func Update(path string, change func(*File) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }() // which ends the lock
	if err := lockFile(lock); err != nil {
		return fmt.Errorf("%w: lock %s: %w", ErrFile, lock.Name(), err)
	}
	f, err := Read(path)
	if err != nil {
		return err
	}
	was, err := f.Bytes()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	if err := change(f); err != nil {
		return err
	}
	if err := f.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	now, err := f.Bytes()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	if string(was) == string(now) {
		return nil
	}
	if len(now) > maxFile {
		return fmt.Errorf("%w: %d bytes would be more than %d", ErrFile, len(now), maxFile)
	}
	if err := replace(path, now); err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	return nil
}

// replace writes a file that is on the disk before it has the name.
func replace(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
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
