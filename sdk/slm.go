package sdk

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/nvme/tcp"
)

// ErrSLMFull says that the drive has no free run of local memory of the size asked for.
var ErrSLMFull = errors.New("drive has too little free local memory")

// ErrRegionOwned says that another host holds memory of the region.
var ErrRegionOwned = errors.New("another host owns the region: name another with region=, or end that host's job")

// ReserveError says how much local memory was asked for and how much the drive has in all. It wraps ErrSLMFull.
type ReserveError struct {
	Drive       string
	Bytes, Size uint64
	Err         error // what the drive said
}

func (e *ReserveError) Error() string {
	return fmt.Sprintf("%s: reserve %d bytes of local memory (the drive has %d in all, some of it held by others): %v; "+
		"open the drive with a larger slm= or use smaller mini-batches", e.Drive, e.Bytes, e.Size, e.Err)
}

func (e *ReserveError) Unwrap() []error { return []error{ErrSLMFull, e.Err} }

// SLM is a run of subsystem local memory held by this association until Release or the device's Close. Its methods
// are safe for concurrent use; overlapping transfers have no order.
type SLM struct {
	c    *Compute
	addr uint64
	size uint64

	association association // Only its commands may use the memory.

	mu       sync.Mutex
	released bool
}

// Reserve takes n bytes of the drive's local memory; no other association can touch them. When there is no free run
// of n bytes the error is an *ReserveError.
func (c *Compute) Reserve(ctx context.Context, n uint64) (*SLM, error) {
	if n == 0 {
		return nil, fmt.Errorf("%s: reserve local memory: 0 bytes", c.d.name)
	}
	if n > c.SLMSize() {
		return nil, &ReserveError{Drive: c.d.name, Bytes: n, Size: c.SLMSize(), Err: nvme.InsufficientResources}
	}
	s := &SLM{c: c, size: n, association: c.d.anyAssociation()}
	if conn, ok := c.d.conn.(nvme.Associated); ok {
		number, err := conn.Association(ctx)
		if err != nil {
			return nil, c.d.wrap("reserve local memory", err)
		}
		// In the next association the same addresses may belong to another host, so commands fail once this one has ended.
		s.association = association{conn: conn.InAssociation(number), number: number}
	}
	whole := wholePages(n)
	addr, err := c.set.reserve(ctx, s.association, whole)
	if isStatus(err, nvme.InsufficientResources) {
		return nil, &ReserveError{Drive: c.d.name, Bytes: n, Size: c.SLMSize(), Err: err}
	}
	if c.d.info.Regions > 1 && isStatus(err, nvme.AccessDenied) {
		err = fmt.Errorf("region %d: %w (%w)", c.d.region, ErrRegionOwned, err)
	}
	if err != nil {
		return nil, c.d.wrap("reserve local memory", err)
	}
	c.d.trace.reserved(addr, int64(whole))
	s.addr = addr
	return s, nil
}

// ReserveSLM is Compute().Reserve, and ErrNoCompute for a plain drive.
func (d *Device) ReserveSLM(ctx context.Context, n uint64) (*SLM, error) {
	if d.compute == nil {
		return nil, d.wrap("reserve local memory", ErrNoCompute)
	}
	return d.compute.Reserve(ctx, n)
}

// Addr is the address of the first byte.
func (s *SLM) Addr() uint64 { return s.addr }

// Size is the number of bytes.
func (s *SLM) Size() uint64 { return s.size }

// Range is bytes [off, off+n) as a memory range. It does not check bounds: the drive does.
func (s *SLM) Range(off, n uint64) cs.Range { return cs.Range{Addr: s.addr + off, Len: n} }

// Release gives the memory back. Views become invalid. Further calls do nothing. Memory that was lost with its
// association needs no release.
func (s *SLM) Release(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.released {
		return nil
	}
	poison(s)
	whole := wholePages(s.size)
	err := s.c.set.release(ctx, s.association, cs.Range{Addr: s.addr, Len: whole})
	if err != nil && !errors.Is(err, tcp.ErrLost) { // which gave it back too
		return s.c.d.wrap("release local memory", err)
	}
	s.released = true
	s.c.d.trace.reserved(s.addr, -int64(whole))
	return nil
}

// wholePages rounds up to a multiple of the reservation granularity.
func wholePages(n uint64) uint64 {
	const g = cs.ReserveGranularity
	return (n + g - 1) / g * g
}

// Store writes p to offset off, in as many commands as the drive's largest transfer asks for.
func (s *SLM) Store(ctx context.Context, off uint64, p []byte) error {
	return s.transfer(ctx, "store", off, p, s.c.set.store)
}

// Fetch reads len(p) bytes from offset off.
func (s *SLM) Fetch(ctx context.Context, off uint64, p []byte) error {
	return s.transfer(ctx, "fetch", off, p, s.c.set.fetch)
}

func (s *SLM) transfer(
	ctx context.Context, what string, off uint64, p []byte,
	do func(context.Context, association, uint64, []byte) *Future,
) error {
	if off > s.size || uint64(len(p)) > s.size-off {
		return fmt.Errorf("%s: %s %d bytes at offset %d: behind the %d reserved", s.c.d.name, what, len(p), off, s.size)
	}
	var all futures
	g := s.c.set.granularity()
	addr := s.addr + off
	for len(p) > 0 {
		n := uint64(min(len(p), s.c.d.mdts))
		// An unaligned head or tail goes alone, so that the bytes between them are aligned.
		switch head := addr % g; {
		case head != 0:
			n = min(n, g-head)
		case n > g:
			n -= n % g
		}
		all = append(all, do(ctx, s.association, addr, p[:n]))
		p, addr = p[n:], addr+n
	}
	return s.c.d.wrap(what+" local memory", all.wait())
}

// View returns bytes [off, off+n) of the drive's memory itself where the drive maps it into this process, else false.
// It is valid until Release; what the drive writes there later shows.
func (s *SLM) View(off, n uint64) ([]byte, bool) {
	m, ok := s.c.d.conn.(nvme.Mapper)
	if !ok || off > s.size || n > s.size-off {
		return nil, false
	}
	return m.MapSLM(s.addr+off, n)
}

// futures are commands submitted together.
type futures []*Future

// wait waits for all commands and returns the first error.
func (fs futures) wait() error {
	var first error
	for _, f := range fs {
		if _, err := f.Wait(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
