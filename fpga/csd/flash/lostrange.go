package flash

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// Range is the run of bytes [From, To) of the flash that were missing from its file when it was opened, or when they
// were read, because the file was cut. They read as zeros. They stay lost until they have been written or deallocated
// again, from their beginning on; the drive keeps the range for the next opening.
type Range struct {
	From int64 `json:"from_byte"`
	To   int64 `json:"to_byte"`
}

// Check returns an error for a range that a flash of size bytes cannot have lost. A nil range is right.
func (l *Range) Check(size int64) error {
	if l != nil && (l.From < 0 || l.To <= l.From || l.To > size) {
		return fmt.Errorf("lost bytes %d to %d of %d: want a range inside the drive", l.From, l.To, size)
	}
	return nil
}

// losses follows a lost range while the flash is written.
type losses struct {
	some atomic.Bool // there is a range: writes of a whole flash look no further

	mu sync.Mutex
	at Range
}

// setRange begins with a range; nil: nothing is lost.
func (l *losses) setRange(r *Range) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = Range{}
	if r != nil {
		l.at = *r
	}
	l.some.Store(r != nil)
}

// addRange makes a range lost, and what lies between it and the range that was lost before. It reports whether that is
// new.
func (l *losses) addRange(r Range) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.some.Load() {
		r = Range{From: min(r.From, l.at.From), To: max(r.To, l.at.To)}
	}
	if l.some.Load() && r == l.at {
		return false
	}
	l.at = r
	l.some.Store(true)
	return true
}

// currentRange returns the range, nil if there is none.
func (l *losses) currentRange() *Range {
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

// FindLost says how many bytes the flash has, and compares the length of the file with it. What the file lacks is lost,
// in addition to what was lost before and kept. It returns what is lost now, nil if nothing is, and whether the file
// was cut since. A longer file belongs to another drive.
func (ff *File) FindLost(size int64, before *Range) (now *Range, fresh bool, err error) {
	ff.size = size
	n, err := ff.Length()
	if err != nil {
		return nil, false, err
	}
	if n > size {
		return nil, false, fmt.Errorf("the file has %d bytes, the drive %d: %w", n, size, ErrGeometry)
	}
	if now = before; now != nil {
		again, err := ff.holdsAny(now.From, min(n, now.From+rewrittenBytes))
		if err != nil {
			return nil, false, err
		}
		if again {
			now = nil
		}
	}
	if fresh = n < size; fresh {
		from := n
		if now != nil {
			from = min(n, now.From)
		}
		now = &Range{From: from, To: size}
	}
	ff.lost.setRange(now)
	return now, fresh, nil
}

// Lost returns what is lost, nil if nothing is.
func (ff *File) Lost() *Range { return ff.lost.currentRange() }

// OnCut sets the function that a read calls when it finds that the file was cut under the open flash. It is set before
// hosts use the flash.
func (ff *File) OnCut(f func(Range) error) { ff.onCut = f }

// rewrittenBytes is the number of bytes that are checked from the beginning of the lost range on: they are zeros,
// unless the file was written again from outside, from a backup or with tar.
const rewrittenBytes = 64 << 10

// holdsAny reports whether a byte of the file in [from, to) is not 0.
func (ff *File) holdsAny(from, to int64) (bool, error) {
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
func (ff *File) noteCut() error {
	n, err := ff.Length()
	if err != nil || n >= ff.size {
		return err
	}
	if now := (Range{From: n, To: ff.size}); ff.lost.addRange(now) && ff.onCut != nil {
		return ff.onCut(now)
	}
	return nil
}
