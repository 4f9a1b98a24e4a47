// Package scratch makes temporary folders that do not stay when their process is killed.
//
// # Overview
//
// [Make] makes a folder and holds a lock on a file beside it, FOLDER.lock, until [Folder.Close] removes both. The
// system ends the lock with the process. So Make also removes the folders of its prefix whose lock nobody holds: those
// of processes that were killed. Where the system has no locks, such folders stay.
//
// # Concurrency
//
// Make and Close may be called from several goroutines and processes at once.
//
// # Errors
//
// A folder of a killed process that cannot be removed, as one of another user, is left, and is not an error.
package scratch

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/internal/filelock"
)

const lockSuffix = ".lock"

// Folder is a temporary folder of this process.
type Folder struct {
	// Path is absolute unless Make was given a relative folder.
	Path string
	lock *filelock.Held
}

// Make makes a folder, which only this user may enter, whose name begins with the prefix. It lies in parent, or in the
// system's folder for temporary files where parent is empty.
func Make(parent, prefix string) (*Folder, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	for {
		// The lock comes before the folder: another process removes no folder that is about to be locked.
		path := filepath.Join(parent, prefix+rand.Text()[:10])
		lock, err := filelock.Hold(path + lockSuffix)
		if errors.Is(err, filelock.ErrLocked) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("make a folder for temporary files (set TMPDIR to a folder that can be written): %w", err)
		}
		if err := os.Mkdir(path, 0o700); err == nil {
			removeAbandoned(parent, prefix, path)
			return &Folder{Path: path, lock: lock}, nil
		} else if err = errors.Join(err, lock.Release()); !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
}

// Close removes the folder with all that it holds.
func (f *Folder) Close() error { return errors.Join(os.RemoveAll(f.Path), f.lock.Release()) }

// removeAbandoned removes the folders of killed processes. own is a folder whose lock is held: where a second lock of
// it is possible, locks say nothing.
func removeAbandoned(parent, prefix, own string) {
	f, err := os.Open(own + lockSuffix)
	if err != nil {
		return
	}
	err = errors.Join(filelock.TryLock(f), f.Close())
	if !errors.Is(err, filelock.ErrLocked) {
		return
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), lockSuffix)
		if !isLock || !strings.HasPrefix(name, prefix) || !e.Type().IsRegular() {
			continue
		}
		lock, err := filelock.Hold(filepath.Join(parent, e.Name()))
		if err != nil {
			continue // of a process that runs, or of another user
		}
		abandoned := &Folder{Path: filepath.Join(parent, name), lock: lock}
		// What cannot be removed now stays, and this process works without its room.
		_ = abandoned.Close()
	}
}
