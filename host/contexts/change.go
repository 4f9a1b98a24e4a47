package contexts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/internal/filelock"
	"github.com/millrace/millrace/internal/wholefile"
)

// Update reads the file, calls change, and replaces the file, unless change fails or changes nothing. Only its owner
// may read the file (0600), and its folder if it is made here.
func Update(path string, change func(*File) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }() // which ends the lock
	if err := filelock.Lock(lock); err != nil {
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
	if err := wholefile.Write(path, now); err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	return nil
}
