package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/partition"
)

// openFile is an open file of this machine that a partition is read from.
type openFile struct {
	*os.File
	path     string          // absolute
	identity source.Identity // when it was opened
}

// openRegularFile opens a file, which the drive closes.
func (d *Drive) openRegularFile(path string) (*openFile, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f, identity, err := source.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	d.closers = append(d.closers, f.Close)
	return &openFile{File: f, path: absolute, identity: identity}, nil
}

// change returns how the file changed since it was opened, or "" if it did not: its bytes were written, or another file
// has its name. A file whose name was removed still has its bytes.
func (f *openFile) change() (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if source.FileIdentity(info) != f.identity {
		return fmt.Sprintf("%s was written at %s, while it is read", f.path,
			info.ModTime().Format(time.RFC3339Nano)), nil
	}
	info, err = os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case source.FileIdentity(info) != f.identity:
		return f.path + " was replaced by another file, while it is read", nil
	}
	return "", nil
}

// stamp returns the place of a partition's file and its state when it was opened. It reports false for a partition that
// is not a file: it is not written after it was put.
func (d *Drive) stamp(p *partition.Partition) (api.Stamp, bool) {
	if r := d.far[p]; r != nil {
		src := r.Source()
		return api.Stamp{Place: source.Redact(src.Name()), State: src.Identity().String()}, true
	}
	f := d.files[p]
	if f == nil {
		return api.Stamp{}, false
	}
	machine, _ := os.Hostname() // if the machine has no name, the path alone is the place
	return api.Stamp{Place: machine + ":" + f.path, State: f.identity.String()}, true
}
