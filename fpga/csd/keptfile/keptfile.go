// Package keptfile keeps the files that lie beside the flash of a drive: its state, the images of its slots, and what
// its owner says of itself.
//
// # Overview
//
// A file has one writer, the process that holds the drive's lock. [Replace] leaves the old content or the new one,
// whenever the process is killed; what is not finished is PATH[Partial]. [Read] reads at most as much as the caller
// expects.
//
// # Concurrency
//
// The functions keep nothing. The lock of the drive keeps two writers of a file apart.
//
// # Errors
//
// The errors are those of the file system; where a file may not be written, they say what to do about it.
package keptfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/internal/ownership"
	"github.com/millrace/millrace/internal/wholefile"
)

// Mode is the mode of flash and of the files beside it: training rows are for their owner and the group that may read
// them.
const Mode = 0o640

// Partial is the suffix of a file that is being written. There is one writer, so the name is always the same, and the
// rest of an interrupted write is overwritten.
const Partial = ".new"

// Replace replaces a file so that a crash leaves the old content or the new one. It calls step after each of its steps,
// whose names begin with what.
func Replace(path string, b []byte, step func(string), what string) error {
	if err := writePartial(path, b); err != nil {
		return err
	}
	step(what + ": written")
	if err := os.Rename(path+Partial, path); err != nil {
		return errors.Join(err, os.Remove(path+Partial))
	}
	step(what + ": renamed")
	return wholefile.SyncFolder(filepath.Dir(path))
}

// writePartial writes the new content of a file beside it. The new file keeps the owner, the group and the mode of the
// old one.
func writePartial(path string, b []byte) error {
	f, err := os.OpenFile(path+Partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, Mode)
	if err != nil {
		return ownership.Explain(err, path)
	}
	if st, err := os.Stat(path); err == nil {
		_ = f.Chmod(st.Mode().Perm()) // where that fails it has Mode
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close(), inheritOwner(f.Name(), path)); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// inheritOwner gives a file that root has made to the owner of the file at path that it replaces, or else to the owner
// of the folder of that path.
func inheritOwner(made, path string) error {
	from := path
	if _, err := os.Lstat(path); err != nil {
		from = filepath.Dir(path)
	}
	return ownership.Inherit(made, from)
}

// Read reads a file of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s: more than %d bytes", path, limit)
	}
	return b, nil
}
