// Package metricfile keeps the metrics of profiles in a file, from one job to the next.
//
// # Concurrency
//
// A [File] may be used from any goroutine, and the file by several processes.
//
// # Errors
//
// A file that is damaged or of another version is an error that wraps offload.ErrTable.
package metricfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/internal/filelock"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/trainmgr/offload"
)

// File is a trainmgr.MetricStore in a file. Several processes may use the file: a lock lets one process at a time
// change it, and each change replaces the file in one step.
type File struct{ path string }

// New returns the store in a file. "" means offload-metrics.json in the folder millrace of the user's cache
// (os.UserCacheDir). The file need not be there.
func New(path string) (*File, error) {
	if path == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("offload metrics: %w", err)
		}
		path = filepath.Join(cache, "millrace", "offload-metrics.json")
	}
	return &File{path}, nil
}

// read returns the table in the file. A missing file is an empty table. A file that this program cannot read as a
// table is an empty table too, and damaged then holds the reason.
func (f *File) read() (table *offload.Table, damaged, err error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return &offload.Table{}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	b, err := io.ReadAll(io.LimitReader(file, offload.MaxTableBytes+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	table, damaged = offload.DecodeTable(b)
	if damaged != nil {
		return &offload.Table{}, fmt.Errorf("%s: %w: the metrics are measured again, and the file becomes %s%s", f.path,
			damaged, f.path, setAsideSuffix), nil
	}
	return table, nil, nil
}

// setAsideSuffix is added to the name of a file that cannot be read, so that nothing is lost if another version of
// Millrace wrote it.
const setAsideSuffix = ".damaged"

// Lookup implements trainmgr.MetricStore. A file that is damaged or of another version is an error that wraps
// offload.ErrTable. The next Put sets the file aside, under its name with ".damaged" appended, and begins another one.
func (f *File) Lookup(keys offload.Keys) (offload.Metrics, offload.Known, error) {
	table, damaged, err := f.read()
	if err = errors.Join(err, damaged); err != nil {
		return offload.Metrics{}, offload.Known{}, fmt.Errorf("offload metrics: %w", err)
	}
	m, known := table.Lookup(keys)
	return m, known, nil
}

// Put implements trainmgr.MetricStore.
func (f *File) Put(keys offload.Keys, m offload.Metrics, have offload.Known) (err error) {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return fmt.Errorf("offload metrics: %w", err)
	}
	lock, err := os.OpenFile(f.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("offload metrics: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := filelock.Lock(lock); err != nil {
		return fmt.Errorf("offload metrics: %s.lock: %w", f.path, err)
	}
	table, damaged, err := f.read()
	if err == nil && damaged != nil {
		err = os.Rename(f.path, f.path+setAsideSuffix)
	}
	if err != nil {
		return fmt.Errorf("offload metrics: %w", err)
	}
	table.Lookup(keys) // a lookup renews its entries, so that they stay in the table
	if err := table.Put(keys, m, have); err != nil {
		return err
	}
	b, err := table.Encode()
	if err != nil {
		return fmt.Errorf("offload metrics: %w", err)
	}
	if err := wholefile.Write(f.path, b); err != nil {
		return fmt.Errorf("offload metrics: %w", err)
	}
	return nil
}
