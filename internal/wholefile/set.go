package wholefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/millrace/millrace/internal/filelock"
)

// ErrBusy says that another program is writing a Set to the folder.
var ErrBusy = errors.New("another program is writing files there: wait for it, or choose another folder")

const (
	partialSuffix = ".partial"      // of a file of a Set that has not its name yet
	setLock       = ".writing.lock" // in the folder, while a Set is open
)

// Set is files of a folder that get their names together, when all of them are whole. Until then each is NAME.partial,
// and files that are to be replaced are as they were. There is one Set of a folder at a time. Its methods may be called
// from several goroutines.
type Set struct {
	folder  string
	replace bool
	lock    *filelock.Held

	mu          sync.Mutex // guards the field below
	uncommitted []string
}

// NewSet begins a set. It makes the folder if there is none. With replace, files that have a name of the set are
// replaced; without, they are an error.
func NewSet(folder string, replace bool) (*Set, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	lock, err := filelock.Hold(filepath.Join(folder, setLock))
	if errors.Is(err, filelock.ErrLocked) {
		return nil, fmt.Errorf("%s: %w", folder, ErrBusy)
	}
	if err != nil {
		return nil, err
	}
	return &Set{folder: folder, replace: replace, lock: lock}, nil
}

// Path returns the path that a file of the set will have.
func (s *Set) Path(name string) string { return filepath.Join(s.folder, name) }

// Create begins a file of the set. The caller syncs and closes it before Commit.
func (s *Set) Create(name string) (*os.File, error) {
	path := s.Path(name)
	switch info, err := os.Lstat(path); {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s is a folder: remove it, or choose another folder for the files", path)
	case err == nil && !s.replace:
		return nil, fmt.Errorf("%s: %w: remove it or ask to overwrite", path, fs.ErrExist)
	}
	f, err := os.Create(path + partialSuffix)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uncommitted = append(s.uncommitted, name)
	return f, nil
}

// Commit gives the files their names, which are on the disk when it returns.
func (s *Set) Commit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.uncommitted) > 0 {
		path := s.Path(s.uncommitted[0])
		if err := os.Rename(path+partialSuffix, path); err != nil {
			return err
		}
		s.uncommitted = s.uncommitted[1:]
	}
	return syncFolder(s.folder)
}

// Close ends the set, and removes the files that have not got their names.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, name := range s.uncommitted {
		errs = append(errs, os.Remove(s.Path(name)+partialSuffix))
	}
	s.uncommitted = nil
	return errors.Join(append(errs, s.lock.Release())...)
}
