package flash

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

	"github.com/millrace/millrace/fpga/csd/keptfile"
	"github.com/millrace/millrace/internal/filelock"
	"github.com/millrace/millrace/internal/ownership"
)

// File is flash in a sparse file, byte for byte from block 0. The file stays locked while it is open. FindLost, or
// SetSize where the file is a new one, says how large the flash is, before hosts use it.
type File struct {
	f        *os.File
	size     int64
	readOnly error // why it cannot be written; nil: it can. Constant once the drive is open
	blocks   stripes
	lost     losses
	onCut    func(Range) error     // called when a read finds that the file was cut; may be nil
	syncs    sync.RWMutex          // those that run hold it for reading
	unsynced atomic.Pointer[error] // why a Sync failed
	lent     *lentFile             // nil: its bytes are not lent
}

// OpenFile opens and locks the file at path. With create it makes the file, or takes an empty one. A file that
// this process may only read is opened for reading.
func OpenFile(path string, create bool) (*File, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, keptfile.Mode)
	var readOnly error
	if !create && (errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)) {
		if readable, rerr := os.Open(path); rerr == nil {
			f, readOnly, err = readable, err, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) && create {
		return nil, fmt.Errorf("%w: create the folder %s first", err, filepath.Dir(path))
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
	return &File{f: f, readOnly: readOnly, lent: newLentFile(f, readOnly == nil, new(atomic.Uint64))}, nil
}

func checkFlashFile(f *os.File, create bool) error {
	switch err := filelock.TryLock(f); {
	case errors.Is(err, filelock.ErrLocked):
		return ErrLocked
	case errors.Is(err, errors.ErrUnsupported):
		return errors.New("lock: drives in files need a Unix system, to keep a second opener out")
	case err != nil:
		return fmt.Errorf("lock: %w", err)
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

// Size returns the bytes of the flash.
func (ff *File) Size() int64 { return ff.size }

// SetSize says how many bytes the flash has. The file stays as long as it is.
func (ff *File) SetSize(size int64) { ff.size = size }

// Length returns the bytes that the file has, which may be fewer than the flash.
func (ff *File) Length() (int64, error) {
	st, err := ff.f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// Extend makes the file as long as the flash.
func (ff *File) Extend() error {
	n, err := ff.Length()
	if err != nil || n >= ff.size {
		return err
	}
	return ff.f.Truncate(ff.size)
}

// ReadOnly reports whether the flash cannot be written.
func (ff *File) ReadOnly() bool { return ff.readOnly != nil }

// WriteError returns why the flash cannot be written, nil if it can.
func (ff *File) WriteError() error { return ff.readOnly }

// ForbidWrites makes the flash one that cannot be written. It is called before hosts use the flash.
func (ff *File) ForbidWrites(why error) { ff.readOnly = why }

// ReadAt reads bytes of the flash. Bytes that the file lacks are zeros, and are noted as lost.
func (ff *File) ReadAt(p []byte, off int64) (int, error) {
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

// WriteAt writes bytes of the flash. They are no longer lost.
func (ff *File) WriteAt(p []byte, off int64) (int, error) {
	if err := checkWithinFlash(ff, off, int64(len(p))); err != nil {
		return 0, err
	}
	if ff.readOnly != nil {
		return 0, fmt.Errorf("%w: %w", ErrReadOnly, ff.readOnly)
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
func (ff *File) Sync() error {
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

// Discard makes bytes of the flash zeros, and frees their space where the file system can.
func (ff *File) Discard(off, n int64) (err error) {
	if err := checkWithinFlash(ff, off, n); err != nil {
		return err
	}
	if ff.readOnly != nil {
		return fmt.Errorf("%w: %w", ErrReadOnly, ff.readOnly)
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
func (ff *File) Lend(off, n int64) (b []byte, term uint64, ok bool) { return ff.lent.lend(off, n) }

// Lasts implements controller.LendingFlash.
func (ff *File) Lasts(term uint64) bool { return ff.lent.lasts(term) }

// OnRecall implements controller.LendingFlash.
func (ff *File) OnRecall(recall func()) {
	if ff.lent != nil {
		ff.lent.recall = recall
	}
}

// Close closes the file, which ends its lock. Nobody reads lent bytes any more.
func (ff *File) Close() error { return errors.Join(ff.lent.close(), ff.f.Close()) }

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
