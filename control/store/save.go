package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/internal/wholefile"
)

// SaveBackup calls write to make a backup, checks the backup, and keeps it as a file that only its owner may read,
// since a backup holds the key that seals tokens. The file appears whole or not at all. SaveBackup never replaces a
// file: if path exists, the error wraps fs.ErrExist.
func SaveBackup(path string, write func(io.Writer) error) (_ Backup, err error) {
	exists := fmt.Errorf("%s is there already and is not replaced: name another file: %w", path, fs.ErrExist)
	if _, err := os.Lstat(path); err == nil {
		return Backup{}, exists
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".partial-*") // readable by its owner only
	if err != nil {
		return Backup{}, err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return Backup{}, err
	}
	b, err := ReadBackup(f.Name())
	if err != nil {
		return b, err
	}
	// A link, unlike a rename, does not replace a file that another program has made meanwhile.
	if err := os.Link(f.Name(), path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = exists
		}
		return b, err
	}
	b.File = path
	return b, wholefile.SyncFolder(filepath.Dir(path))
}
