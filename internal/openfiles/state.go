package openfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// State is what distinguishes one state of a file from every other.
type State struct {
	Device, Inode uint64 // 0 where the system has none
	Size          int64  // bytes
	Modified      int64  // the time of the last write, in nanoseconds since 1970
}

// ChangedError says that a file was written or replaced after it was opened first.
type ChangedError struct {
	Path    string
	Was, Is State
}

func (e *ChangedError) Error() string {
	if e.Was.Device == e.Is.Device && e.Was.Inode == e.Is.Inode {
		return fmt.Sprintf("%s was written at %s, while it is read", e.Path,
			time.Unix(0, e.Is.Modified).Format(time.RFC3339Nano))
	}
	return e.Path + " was replaced by another file, while it is read"
}

// ErrNotRegular says that a name is not a regular file: partitions are read at any place and more than once.
var ErrNotRegular = errors.New("not a regular file: partitions are read from files")

// CheckRegular returns an error that wraps ErrNotRegular if a file is not a regular one.
func CheckRegular(name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is %w", name, ErrNotRegular)
	}
	return nil
}

// OpenRegular opens a regular file for reading and returns its state. The file's type is checked before it is opened:
// opening a pipe would wait for its writer, and no interrupt ends that.
func OpenRegular(name string) (*os.File, State, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, State{}, err
	}
	if err := CheckRegular(name, info); err != nil {
		return nil, State{}, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, State{}, err
	}
	if info, err = f.Stat(); err != nil {
		return nil, State{}, errors.Join(err, f.Close())
	}
	return f, StateOf(info), nil
}
