// Package filelock lets programs use a file or a folder one at a time.
package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrLocked says that another program has the lock.
var ErrLocked = errors.New("another program has the lock")

// Held is a lock file that this program holds.
type Held struct{ f *os.File }

// Hold makes a file that stands for something else, as an output, and takes its lock. It returns ErrLocked if another
// program, or this one, holds it. The lock ends with Unlock or Release, or with the process however that ends: then the
// file stays, and the next Hold takes it over. On a file system without locks Hold only makes the file.
func Hold(path string) (*Held, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return nil, err
		}
		if err := TryLock(f); err != nil && !unsupported(err) {
			return nil, errors.Join(err, f.Close())
		}
		// Release removes the file, perhaps after it was opened here: then it is no longer the file of that name.
		mine, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		there, err := os.Stat(path)
		switch {
		case err == nil && os.SameFile(mine, there):
			return &Held{f}, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, errors.Join(err, f.Close())
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

// HoldOutput holds a file or a folder that is being written, by a lock file beside it. The error names the output.
func HoldOutput(path string) (*Held, error) {
	held, err := Hold(path + ".partial.lock")
	if errors.Is(err, ErrLocked) {
		err = fmt.Errorf("another program is writing %s: wait for it, or choose another: %w", path, err)
	}
	return held, err
}

// unsupported reports whether an error of TryLock says that the file system has no locks.
func unsupported(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK)
}

// Unlock ends the lock and keeps the file.
func (h *Held) Unlock() error { return h.f.Close() }

// Release removes the file and ends the lock.
func (h *Held) Release() error { return errors.Join(os.Remove(h.f.Name()), h.f.Close()) }
