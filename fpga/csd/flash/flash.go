package flash

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/millrace/millrace/fpga/csd/memory"
	"github.com/millrace/millrace/nvme/controller"
)

// Flash stores the blocks of a drive.
type Flash interface {
	controller.Flash
	io.Closer
}

// Errors of flash.
var (
	// ErrGeometry says that the drive was created with another size or block size.
	ErrGeometry = errors.New("drive has another geometry")
	// ErrLocked says that the file is open as flash already, here or in another process.
	ErrLocked = errors.New("the flash file is locked: end the process that has it open")
	// ErrReadOnly says that the flash cannot be written.
	ErrReadOnly = errors.New("flash is read-only")

	errOutside = errors.New("out of range")
)

// Block sizes that a drive can have.
const (
	LBA512  = 512
	LBA4096 = 4096
)

// CheckGeometry compares a size and block size with what a drive can have. A drive without flash has 0 and 0.
func CheckGeometry(size int64, lba int) error {
	if size == 0 && lba == 0 {
		return nil
	}
	if lba != LBA512 && lba != LBA4096 {
		return fmt.Errorf("block size %d: want %d or %d: %w", lba, LBA512, LBA4096, ErrGeometry)
	}
	if size <= 0 || size%int64(lba) != 0 {
		return fmt.Errorf("size %d is not a positive multiple of the block size %d: %w", size, lba, ErrGeometry)
	}
	return nil
}

// stripes makes blocks atomic: a reader sees each block as one write left it. A stripe covers stripeSize bytes, so a
// block never crosses one; a transfer of several blocks takes its stripes one after the other and is not atomic as a
// whole.
type stripes [64]sync.RWMutex

const stripeSize = 1 << 20

// eachStripe calls f for the part of [off, off+n) in every stripe with that stripe locked. f returns how many bytes of
// its part are done, which counts where it fails. each ends at the first error, and returns how many bytes are done.
func (s *stripes) eachStripe(off int64, n int, write bool, f func(at int64, from, to int) (int, error)) (int, error) {
	for from := 0; from < n; {
		at := off + int64(from)
		to := min(n, from+int(stripeSize-at%stripeSize))
		l := &s[at/stripeSize%int64(len(s))]
		if done, err := withStripeLocked(l, write, func() (int, error) { return f(at, from, to) }); err != nil {
			return from + done, err
		}
		from = to
	}
	return n, nil
}

func withStripeLocked(l *sync.RWMutex, write bool, f func() (int, error)) (int, error) {
	if write {
		l.Lock()
		defer l.Unlock()
	} else {
		l.RLock()
		defer l.RUnlock()
	}
	return f()
}

// memoryFlash is flash in memory: sparse, and gone with the process.
type memoryFlash struct {
	mem    []byte
	free   func() error
	blocks stripes
}

// NewMemory makes an empty flash of size bytes in memory. A flash of 0 bytes is that of a drive without flash.
func NewMemory(size int64) (Flash, error) {
	if size == 0 {
		return &memoryFlash{free: func() error { return nil }}, nil
	}
	mem, free, err := memory.Map(size)
	if err != nil {
		return nil, fmt.Errorf("flash in memory: %w", err)
	}
	return &memoryFlash{mem: mem, free: free}, nil
}

func (m *memoryFlash) Size() int64    { return int64(len(m.mem)) }
func (m *memoryFlash) ReadOnly() bool { return false }
func (m *memoryFlash) Sync() error    { return nil }
func (m *memoryFlash) Close() error   { return m.free() }

func (m *memoryFlash) ReadAt(p []byte, off int64) (int, error) {
	if err := checkWithinFlash(m, off, int64(len(p))); err != nil {
		return 0, err
	}
	return m.blocks.eachStripe(off, len(p), false, func(at int64, from, to int) (int, error) {
		return copy(p[from:to], m.mem[at:]), nil
	})
}

func (m *memoryFlash) WriteAt(p []byte, off int64) (int, error) {
	if err := checkWithinFlash(m, off, int64(len(p))); err != nil {
		return 0, err
	}
	return m.blocks.eachStripe(off, len(p), true, func(at int64, from, to int) (int, error) {
		return copy(m.mem[at:], p[from:to]), nil
	})
}

func (m *memoryFlash) Discard(off, n int64) error {
	if err := checkWithinFlash(m, off, n); err != nil {
		return err
	}
	_, err := m.blocks.eachStripe(off, int(n), true, func(at int64, from, to int) (int, error) {
		memory.Zero(m.mem[at : at+int64(to-from)])
		return to - from, nil
	})
	return err
}

// checkWithinFlash checks a run of bytes against the flash.
func checkWithinFlash(f Flash, off, n int64) error {
	if off < 0 || n < 0 || off > f.Size() || n > f.Size()-off {
		return fmt.Errorf("flash: bytes %d+%d of %d: %w", off, n, f.Size(), errOutside)
	}
	return nil
}
