package csd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/millrace/millrace/internal/ownership"
)

// fileFlash is flash in a sparse file, byte for byte from block 0. The file stays locked while it is open.
type fileFlash struct {
	f        *os.File
	size     int64
	readOnly error // why it cannot be written; nil: it can. Constant once the drive is open
	blocks   stripes
	lost     losses
	onCut    func(lostRange) error // called when a read finds that the file was cut; may be nil
	syncs    sync.RWMutex          // those that run hold it for reading
	unsynced atomic.Pointer[error] // why a Sync failed
	lent     *lentFile             // nil: its bytes are not lent
}

// fileMode is the mode of flash and of the files beside it: training rows are for their owner and the group that may
// read them.
const fileMode = 0o640

// openFileFlash opens and locks the file at path. With create it makes the file, or takes an empty one. A file that
// this process may only read is opened for reading.
func openFileFlash(path string, create bool) (*fileFlash, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, fileMode)
	var readOnly error
	if !create && (errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)) {
		if readable, rerr := os.Open(path); rerr == nil {
			f, readOnly, err = readable, err, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) && create {
		return nil, fmt.Errorf("%w: create the folder %s first", err, filepath.Dir(path))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noFlashError(path, err)
	}
	if err != nil {
		return nil, ownership.Explain(err, path)
	}
	if err := checkFlashFile(f, create); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if create {
		if err := ownership.Inherit(path, filepath.Dir(path)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return &fileFlash{f: f, readOnly: readOnly, lent: newLentFile(f, readOnly == nil, new(atomic.Uint64))}, nil
}

// noFlashError returns the error of a drive whose flash is not there. A state without its flash does not make a drive,
// and keeps another from being created at the path.
func noFlashError(path string, err error) error {
	if _, serr := os.Lstat(statePath(path)); serr != nil {
		return fmt.Errorf("%w: %w; create it with millrace drive create", ErrNoDrive, err)
	}
	return fmt.Errorf("%w: %w, but %s is there: restore the flash, or remove that file and create another drive",
		ErrNoDrive, err, statePath(path))
}

func checkFlashFile(f *os.File, create bool) error {
	err := lockFile(f)
	if errors.Is(err, ErrBusy) {
		return lockedError(f.Name())
	}
	if err != nil {
		return err
	}
	st, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return errors.New("is not a regular file")
	case create && st.Size() > 0:
		return fmt.Errorf("holds %d bytes already: %w", st.Size(), fs.ErrExist)
	}
	return nil
}

func (ff *fileFlash) Size() int64    { return ff.size }
func (ff *fileFlash) ReadOnly() bool { return ff.readOnly != nil }

func (ff *fileFlash) ReadAt(p []byte, off int64) (int, error) {
	if err := checkWithinFlash(ff, off, int64(len(p))); err != nil {
		return 0, err
	}
	return ff.blocks.eachStripe(off, len(p), false, func(at int64, from, to int) (int, error) {
		n, err := ff.f.ReadAt(p[from:to], at)
		if errors.Is(err, io.EOF) {
			// Somebody cut the file: what is missing reads as zeros.
			clear(p[from+n : to])
			n, err = to-from, ff.noteCut()
		}
		return n, err
	})
}

func (ff *fileFlash) WriteAt(p []byte, off int64) (int, error) {
	if err := checkWithinFlash(ff, off, int64(len(p))); err != nil {
		return 0, err
	}
	if ff.readOnly != nil {
		return 0, fmt.Errorf("%w: %w", errReadOnly, ff.readOnly)
	}
	n, err := ff.blocks.eachStripe(off, len(p), true, func(at int64, from, to int) (int, error) {
		return ff.f.WriteAt(p[from:to], at)
	})
	if err == nil {
		ff.lost.noteReplaced(off, int64(len(p)))
	}
	return n, err
}

// Sync puts everything written on the disk. After a failure it fails until the file is opened again: the kernel may
// have dropped what it could not write, reports that once, and writes later data as if nothing were missing.
func (ff *fileFlash) Sync() error {
	if ff.readOnly != nil {
		return nil
	}
	ff.syncs.RLock()
	if err := ff.f.Sync(); err != nil {
		err = fmt.Errorf(
			"what was written may be lost, and nothing more counts as flushed until the drive is opened again: %w", err)
		ff.unsynced.CompareAndSwap(nil, &err)
	}
	ff.syncs.RUnlock()
	// Of the syncs that run at a time the kernel tells only one: wait for all of them.
	ff.syncs.Lock()
	defer ff.syncs.Unlock()
	if err := ff.unsynced.Load(); err != nil {
		return *err
	}
	return nil
}

func (ff *fileFlash) Discard(off, n int64) (err error) {
	if err := checkWithinFlash(ff, off, n); err != nil {
		return err
	}
	if ff.readOnly != nil {
		return fmt.Errorf("%w: %w", errReadOnly, ff.readOnly)
	}
	defer func(from, n int64) {
		if err == nil {
			ff.lost.noteReplaced(from, n)
		}
	}(off, n)
	const step = 1 << 30
	for n > 0 {
		part := min(n, step)
		if _, err := ff.blocks.eachStripe(off, int(part), true, func(at int64, from, to int) (int, error) {
			return 0, punch(ff.f, at, int64(to-from))
		}); err != nil {
			return err
		}
		off, n = off+part, n-part
	}
	return nil
}

// Lend implements controller.LendingFlash.
func (ff *fileFlash) Lend(off, n int64) (b []byte, term uint64, ok bool) { return ff.lent.lend(off, n) }

// Lasts implements controller.LendingFlash.
func (ff *fileFlash) Lasts(term uint64) bool { return ff.lent.lasts(term) }

// OnRecall implements controller.LendingFlash.
func (ff *fileFlash) OnRecall(recall func()) {
	if ff.lent != nil {
		ff.lent.recall = recall
	}
}

func (ff *fileFlash) Close() error { return errors.Join(ff.lent.close(), ff.f.Close()) }

// writeZeros is punch where holes cannot be made.
func writeZeros(f *os.File, off, n int64) error {
	zeros := make([]byte, min(n, 1<<20))
	for n > 0 {
		part := zeros[:min(n, int64(len(zeros)))]
		if _, err := f.WriteAt(part, off); err != nil {
			return err
		}
		off, n = off+int64(len(part)), n-int64(len(part))
	}
	return nil
}
