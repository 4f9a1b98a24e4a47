package host

import (
	"errors"
	"io/fs"
	"os"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/openfiles"
	"github.com/millrace/millrace/sdk/partition"
)

// openRegularFile opens a file, which the drive closes.
func (d *Drive) openRegularFile(path string) (*openfiles.File, error) {
	f, err := d.o.Files.Open(path)
	if err != nil {
		return nil, err
	}
	d.closers = append(d.closers, f.Close)
	return f, nil
}

// change returns how a file changed since it was opened, or "" if it did not: its bytes were written, or another file
// has its name. A file whose name was removed still has its bytes while its descriptor is open.
func change(f *openfiles.File) (string, error) {
	changed := &openfiles.ChangedError{Path: f.Path(), Was: f.State()}
	open, err := f.Acquire()
	switch {
	case errors.As(err, &changed):
		return changed.Error(), nil
	case errors.Is(err, fs.ErrNotExist):
		return f.Path() + " was removed, while it is read", nil
	case err != nil:
		return "", err
	}
	defer f.Release()
	info, err := open.Stat()
	if err != nil {
		return "", err
	}
	if changed.Is = openfiles.StateOf(info); changed.Is != changed.Was {
		return changed.Error(), nil
	}
	info, err = os.Stat(f.Path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	}
	if changed.Is = openfiles.StateOf(info); changed.Is != changed.Was {
		return changed.Error(), nil
	}
	return "", nil
}

// stamp returns the place of a partition's file and its state when it was opened. It reports false for a partition that
// is not a file: it is not written after it was put.
func (d *Drive) stamp(p *partition.Partition) (api.Stamp, bool) {
	if r := d.far[p]; r != nil {
		src := r.Source()
		return api.Stamp{Place: src.Name(), State: src.Identity().String()}, true
	}
	f := d.files[p]
	if f == nil {
		return api.Stamp{}, false
	}
	machine, _ := os.Hostname() // if the machine has no name, the path alone is the place
	return api.Stamp{Place: machine + ":" + f.Path(), State: source.FileIdentity(f.State()).String()}, true
}
