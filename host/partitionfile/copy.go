package partitionfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/wholefile"
)

// OpenWhole opens a file of this machine or an object of a store to be read from its beginning to its end. If the
// object changes meanwhile, reading fails.
func OpenWhole(ctx context.Context, at source.Location, opener source.Opener) (io.ReadCloser, error) {
	if !at.InStore() {
		return os.Open(at.Name())
	}
	object, err := opener.Open(ctx, at, source.Identity{})
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{source.NewSequence(ctx, object, source.Retry{}), object}, nil
}

// copiedFile is a Parquet file that is copied.
type copiedFile struct {
	at     source.Location
	object io.ReadCloser // nil: a file of this machine
	copied Description
}

// Copy copies Parquet files that a pipeline can read into a folder, and describes the copies, which keep their base
// names. It examines all files before it copies the first, and the copies get their names together, when all are whole.
func (r Resolver) Copy(
	ctx context.Context, files []source.Location, folder string, overwrite bool,
) (copies []Description, err error) {
	var copied []copiedFile
	defer func() {
		for _, f := range copied {
			if f.object != nil {
				err = errors.Join(err, f.object.Close())
			}
		}
	}()
	from := map[string]source.Location{} // by the path of the copy
	for _, at := range files {
		f := copiedFile{at: at}
		if at.InStore() {
			// The object is opened before it is described: if it changes in between, its copy fails.
			if f.object, err = OpenWhole(ctx, at, r.Opener); err != nil {
				return nil, err
			}
		}
		copied = append(copied, f)
		made, err := r.describeCopy(ctx, at, folder, overwrite)
		if err != nil {
			return nil, err
		}
		if other, ok := from[made.Path]; ok {
			return nil, fmt.Errorf("%s and %s have the same base name, by which partitions are named: import them into "+
				"two folders", other, at)
		}
		from[made.Path], copied[len(copied)-1].copied = at, made
		copies = append(copies, made)
	}
	return copies, copyFiles(ctx, copied, folder, overwrite)
}

// describeCopy describes the copy that a file will have in a folder.
func (r Resolver) describeCopy(
	ctx context.Context, at source.Location, folder string, overwrite bool,
) (Description, error) {
	v, err := r.Describe(ctx, at, Parquet, text.Options{}, false)
	if err != nil {
		return v, err
	}
	if err := v.CheckReadable(); err != nil {
		return v, err
	}
	base := filepath.Base(at.Name())
	if at.InStore() {
		if base, err = at.BaseName(); err != nil {
			return v, err
		}
	}
	v.Path = filepath.Join(folder, base)
	old, err := os.Stat(v.Path)
	if err != nil {
		return v, nil // no file has the name of the copy
	}
	if original, err := os.Stat(at.Name()); err == nil && os.SameFile(original, old) {
		return v, fmt.Errorf("%s lies in %s already: choose another folder", at, folder)
	}
	if !overwrite {
		return v, fmt.Errorf("%s exists: choose another folder, or overwrite it", v.Path)
	}
	return v, nil
}

// copyFiles copies all of the files, or none.
func copyFiles(ctx context.Context, files []copiedFile, folder string, overwrite bool) (err error) {
	set, err := wholefile.NewSet(folder, overwrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	for _, f := range files {
		in := f.object
		if in == nil {
			if in, err = os.Open(f.at.Name()); err != nil {
				return err
			}
		}
		err := copyFile(ctx, in, set, filepath.Base(f.copied.Path))
		if f.object == nil {
			err = errors.Join(err, in.Close())
		}
		if err != nil {
			return fmt.Errorf("import %s: %w", f.at, err)
		}
	}
	return set.Commit()
}

// copyFile writes a file of a set of what a reader gives.
func copyFile(ctx context.Context, in io.Reader, set *wholefile.Set, name string) error {
	out, err := set.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, cancellableReader{ctx, in})
	return errors.Join(err, out.Sync(), out.Close())
}

// cancellableReader reads until ctx ends.
type cancellableReader struct {
	ctx context.Context
	r   io.Reader
}

func (u cancellableReader) Read(p []byte) (int, error) {
	if err := context.Cause(u.ctx); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}
