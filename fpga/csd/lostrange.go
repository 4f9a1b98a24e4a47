package csd

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// lostRange is the run of bytes [From, To) of the flash that were missing from its file when the drive was opened,
// because the file was cut. They read as zeros. PATH.json keeps the range until its bytes have been written or
// deallocated again, from its beginning on.
type lostRange struct {
	From int64 `json:"from_byte"`
	To   int64 `json:"to_byte"`
}

func (l *lostRange) checkRange(size int64) error {
	if l != nil && (l.From < 0 || l.To <= l.From || l.To > size) {
		return fmt.Errorf("lost bytes %d to %d of %d: want a range inside the drive", l.From, l.To, size)
	}
	return nil
}

// losses follows a lost range while the flash is written.
type losses struct {
	some atomic.Bool // there is a range: writes of a whole flash look no further

	mu sync.Mutex
	at lostRange
}

// setRange begins with a range; nil: nothing is lost.
func (l *losses) setRange(r *lostRange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = lostRange{}
	if r != nil {
		l.at = *r
	}
	l.some.Store(r != nil)
}

// addRange makes a range lost, and what lies between it and the range that was lost before. It reports whether that is
// new.
func (l *losses) addRange(r lostRange) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.some.Load() {
		r = lostRange{From: min(r.From, l.at.From), To: max(r.To, l.at.To)}
	}
	if l.some.Load() && r == l.at {
		return false
	}
	l.at = r
	l.some.Store(true)
	return true
}

// currentRange returns the range, nil if there is none.
func (l *losses) currentRange() *lostRange {
	if !l.some.Load() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.From >= l.at.To {
		return nil
	}
	r := l.at
	return &r
}

// noteReplaced notes that bytes [off, off+n) have been written or deallocated.
func (l *losses) noteReplaced(off, n int64) {
	if !l.some.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if off <= l.at.From && off+n > l.at.From {
		l.at.From = min(off+n, l.at.To)
	}
	if l.at.From >= l.at.To {
		l.some.Store(false)
	}
}

// compareLength compares the file's length with the drive's size. The missing bytes are lost, in addition to those lost
// before. A longer file belongs to another drive.
func (ff *fileFlash) compareLength(size int64, before *lostRange) (now *lostRange, fresh bool, err error) {
	st, err := ff.f.Stat()
	if err != nil {
		return nil, false, err
	}
	ff.size = size
	if st.Size() > size {
		return nil, false, fmt.Errorf("the file has %d bytes, the drive %d: %w", st.Size(), size, ErrGeometry)
	}
	if before != nil {
		again, err := ff.holdsAny(before.From, min(st.Size(), before.From+rewrittenBytes))
		if err != nil {
			return nil, false, err
		}
		if again {
			before = nil
		}
	}
	if st.Size() == size {
		return before, false, nil
	}
	now = &lostRange{From: st.Size(), To: size}
	if before != nil {
		now.From = min(now.From, before.From)
	}
	return now, true, nil
}

// rewrittenBytes is the number of bytes that are checked from the beginning of the lost range on: they are zeros,
// unless the file was written again from outside, from a backup or with tar.
const rewrittenBytes = 64 << 10

// holdsAny reports whether a byte of the file in [from, to) is not 0.
func (ff *fileFlash) holdsAny(from, to int64) (bool, error) {
	if to <= from {
		return false, nil
	}
	b := make([]byte, to-from)
	if _, err := ff.f.ReadAt(b, from); err != nil && err != io.EOF {
		return false, err
	}
	return bytes.ContainsFunc(b, func(r rune) bool { return r != 0 }), nil
}

// noteCut notes what is missing from a file that was cut while it is open.
func (ff *fileFlash) noteCut() error {
	st, err := ff.f.Stat()
	if err != nil || st.Size() >= ff.size {
		return err
	}
	if now := (lostRange{From: st.Size(), To: ff.size}); ff.lost.addRange(now) && ff.onCut != nil {
		return ff.onCut(now)
	}
	return nil
}

// keepCut keeps what is missing from a file that was cut while the drive is open, and makes the file whole again.
func (d *Drive) keepCut(ff *fileFlash, lost lostRange) error {
	d.opt.Logger.Error("the flash file was cut while the drive is open: what is missing reads as zeros",
		"drive", d.logName(), "from_byte", lost.From, "to_byte", lost.To)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.saveState(); err != nil { // a longer file would hide that it was cut
		d.opt.Logger.Warn("that the flash file was cut is not kept", "drive", d.logName(), "error", err)
		return nil
	}
	return ff.extendFile()
}

// extendFile makes the file as long as the flash.
func (ff *fileFlash) extendFile() error {
	st, err := ff.f.Stat()
	if err != nil || st.Size() >= ff.size {
		return err
	}
	return ff.f.Truncate(ff.size)
}

// Lost returns the bytes of namespace 1 that were missing when the drive was opened, or when they were read, and have
// not been written since: n from off on, 0 if there are none.
func (d *Drive) Lost() (off, n int64) {
	if ff, ok := d.flash.(*fileFlash); ok {
		if r := ff.lost.currentRange(); r != nil {
			return r.From, r.To - r.From
		}
	}
	return 0, 0
}
