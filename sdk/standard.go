package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/sdk/processor"
)

// maxSets is how many memory range sets for executions are kept, the least recently used going first. With those that
// hold reservations they must stay below what a drive gives an association (64 here).
const maxSets = 24

// setBytes is the most bytes of one memory range: its length has 32 bits.
const setBytes = 1<<32 - cs.ReserveGranularity

// standardSet computes with Subsystem Local Memory and Computational Programs: Memory Copies, then an Execute Program
// over a memory range set that was created once. SLM is reserved by creating a memory range set over it.
type standardSet struct {
	d *Device

	partial sync.Mutex // one read-modify-write of a dword at a time

	mu       sync.Mutex // guards what follows, and the creation and deletion of sets
	reserved map[uint64]reservation
	sets     []*rangeSet // for executions, the least recently used first
	slot     int         // the active program's; -1: not known

	association uint64 // the number of the one that reserved and sets belong to
}

// current reports whether commands to an association go to the one that s knows. A newer association begins without
// sets and reservations. s.mu is held.
func (s *standardSet) current(a association) bool {
	if a.number == 0 || a.number == s.association {
		return true
	}
	if a.number < s.association {
		return false
	}
	s.association, s.sets, s.reserved = a.number, nil, make(map[uint64]reservation)
	return true
}

// reservation is SLM held by a memory range set.
type reservation struct {
	r  cs.Range
	id uint16
}

// rangeSet is a memory range set for executions.
type rangeSet struct {
	ranges []cs.Range
	id     uint16
	uses   int // executions that run over it
}

func newStandardSet(d *Device) *standardSet {
	s := &standardSet{d: d, reserved: make(map[uint64]reservation), slot: -1}
	s.noteActive(d.info.Programs)
	return s
}

func (s *standardSet) noteActive(list []Program) {
	for _, p := range list {
		if p.Active {
			s.slot = p.Slot
		}
	}
}

// standard makes a command of the Computational Programs set address the device's region.
func (d *Device) standard(cmd nvme.Command) nvme.Command {
	cmd.SetNSID(cs.RegionNamespace(d.region))
	return cmd
}

func (s *standardSet) granularity() uint64 { return cs.SLMGranularity }

// create makes a memory range set.
func (s *standardSet) create(ctx context.Context, a association, ranges []cs.Range) (uint16, error) {
	t, err := cs.CreateRangeSet(ranges)
	if err != nil {
		return 0, err
	}
	cmd := s.d.standard(t.Command)
	cpl, err := s.d.trace.admin(ctx, a.conn, &cmd, t.Data)
	return uint16(cpl.DW0()), err
}

func (s *standardSet) drop(ctx context.Context, a association, id uint16) error {
	cmd := s.d.standard(cs.DeleteRangeSet(id))
	_, err := s.d.trace.admin(ctx, a.conn, &cmd, nil)
	return err
}

// reserve looks for room. The standard set has no command that finds some, so candidates are tried: behind what this
// association holds itself, then further on in steps. Only the drive knows what others hold.
func (s *standardSet) reserve(ctx context.Context, a association, n uint64) (uint64, error) {
	if n > cs.MaxRanges*setBytes {
		return 0, fmt.Errorf("%d bytes in one memory range set, at most %d: %w",
			n, uint64(cs.MaxRanges*setBytes), nvme.InsufficientResources)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.current(a) // if it is over, the drive's connection says so
	size, end := s.d.window.Len, s.d.window.Addr+s.d.window.Len
	step := max(n, size/1024/cs.ReserveGranularity*cs.ReserveGranularity, cs.ReserveGranularity)
	for at := s.d.window.Addr; at <= end && n <= end-at; {
		if next, taken := s.behind(cs.Range{Addr: at, Len: n}); taken {
			at = next
			continue
		}
		var parts []cs.Range
		for off := uint64(0); off < n; off += setBytes {
			parts = append(parts, cs.Range{Addr: at + off, Len: min(n-off, setBytes)})
		}
		id, err := s.create(ctx, a, parts)
		if err == nil {
			s.reserved[at] = reservation{cs.Range{Addr: at, Len: n}, id}
			return at, nil
		}
		if !isStatus(err, nvme.InsufficientResources) {
			return 0, err
		}
		if at == end-n {
			break
		}
		at = min(at+step, end-n)
	}
	return 0, nvme.InsufficientResources
}

// behind returns the end of a reservation of this association that r overlaps.
func (s *standardSet) behind(r cs.Range) (uint64, bool) {
	for _, have := range s.reserved {
		if have.r.Overlaps(r) {
			return have.r.Addr + have.r.Len, true
		}
	}
	return 0, false
}

func (s *standardSet) release(ctx context.Context, a association, r cs.Range) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.current(a) {
		return nil
	}
	have, ok := s.reserved[r.Addr]
	if !ok {
		return nvme.InvalidMemoryRangeSetID
	}
	// Sets of executions over it hold it too.
	for i := 0; i < len(s.sets); {
		set := s.sets[i]
		if !slices.ContainsFunc(set.ranges, have.r.Overlaps) {
			i++
			continue
		}
		if set.uses > 0 {
			return nvme.MemoryRangeSetInUse
		}
		if err := s.drop(ctx, a, set.id); err != nil {
			return err
		}
		s.sets = slices.Delete(s.sets, i, i+1)
	}
	if err := s.drop(ctx, a, have.id); err != nil {
		return err
	}
	delete(s.reserved, r.Addr)
	return nil
}

func (s *standardSet) store(ctx context.Context, a association, addr uint64, p []byte) *Future {
	const g = cs.SLMGranularity
	if addr%g == 0 && len(p)%g == 0 {
		cmd := cs.MemoryWrite(addr, uint32(len(p)))
		return s.d.submit(ctx, a, &cmd, p)
	}
	return inBackground(func() (nvme.Completion, error) {
		s.partial.Lock()
		defer s.partial.Unlock()
		var dword [g]byte
		cmd := cs.MemoryRead(addr/g*g, g)
		if cpl, err := s.d.submit(ctx, a, &cmd, dword[:]).Wait(); err != nil {
			return cpl, err
		}
		copy(dword[addr%g:], p)
		cmd = cs.MemoryWrite(addr/g*g, g)
		return s.d.submit(ctx, a, &cmd, dword[:]).Wait()
	})
}

func (s *standardSet) fetch(ctx context.Context, a association, addr uint64, p []byte) *Future {
	const g = cs.SLMGranularity
	if addr%g == 0 && len(p)%g == 0 {
		cmd := cs.MemoryRead(addr, uint32(len(p)))
		return s.d.submit(ctx, a, &cmd, p)
	}
	return inBackground(func() (nvme.Completion, error) {
		var dword [g]byte
		cmd := cs.MemoryRead(addr/g*g, g)
		cpl, err := s.d.submit(ctx, a, &cmd, dword[:]).Wait()
		copy(p, dword[addr%g:])
		return cpl, err
	})
}

// inBackground runs f, which waits for commands of its own, as if it were one command.
func inBackground(f func() (nvme.Completion, error)) *Future {
	u := &Future{done: make(chan struct{})}
	go func() {
		defer close(u.done)
		defer processor.Contain("a command to the drive", &u.err)
		u.completion, u.err = f()
	}()
	return u
}

// maxArgs leaves room for the ranges: when no further set can be created they travel with the arguments.
func (s *standardSet) maxArgs(_, ranges int) int { return s.d.mdts - ranges*cs.MemoryRangeSize }

func (s *standardSet) preprocess(
	ctx context.Context, a association, copies []cs.Copy, ranges []cs.Range, args []byte,
) (v uint64, moved time.Duration, err error) {
	moves, err := cs.MemoryCopies(copies, uint32(s.d.info.BlockSize))
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	for i := range moves {
		if _, err := s.d.submit(ctx, a, &moves[i].Command, moves[i].Data).Wait(); err != nil {
			return 0, time.Since(start), err
		}
	}
	if len(moves) > 0 {
		moved = time.Since(start)
	}
	v, err = s.execute(ctx, a, ranges, args)
	if isStatus(err, nvme.ProgramNotActivated) {
		// Another host activated another slot after the last look.
		if err := s.lookForActive(ctx); err != nil {
			return 0, moved, err
		}
		v, err = s.execute(ctx, a, ranges, args)
	}
	return v, moved, err
}

func (s *standardSet) lookForActive(ctx context.Context) error {
	list, err := s.d.programs(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slot = -1
	for i, p := range list {
		if p.Active {
			s.slot = i
		}
	}
	if s.slot < 0 {
		return nvme.ProgramNotActivated
	}
	return nil
}

func (s *standardSet) execute(ctx context.Context, a association, ranges []cs.Range, args []byte) (uint64, error) {
	set, slot, err := s.acquire(ctx, a, ranges)
	if err != nil {
		return 0, err
	}
	var t cs.Transfer
	if set != nil {
		defer s.done(set)
		t = cs.ExecuteSet(slot, set.id, args)
	} else if t, err = cs.Execute(slot, ranges, args); err != nil {
		return 0, err
	}
	cmd := s.d.standard(t.Command)
	cpl, err := s.d.submit(ctx, a, &cmd, t.Data).Wait()
	return cpl.Result(), err
}

// acquire finds or creates the memory range set of ranges. It returns nil when the drive has no room for another: then
// the ranges go along inline.
func (s *standardSet) acquire(ctx context.Context, a association, ranges []cs.Range) (*rangeSet, uint16, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slot < 0 {
		return nil, 0, nvme.ProgramNotActivated
	}
	if !s.current(a) {
		return nil, uint16(s.slot), nil // the drive's connection refuses it
	}
	if i := slices.IndexFunc(s.sets, func(r *rangeSet) bool { return slices.Equal(r.ranges, ranges) }); i >= 0 {
		set := s.sets[i]
		set.uses++
		s.sets = append(slices.Delete(s.sets, i, i+1), set)
		return set, uint16(s.slot), nil
	}
	if len(s.sets) >= maxSets {
		i := slices.IndexFunc(s.sets, func(r *rangeSet) bool { return r.uses == 0 })
		if i < 0 {
			return nil, uint16(s.slot), nil
		}
		err := s.drop(ctx, a, s.sets[i].id)
		if isStatus(err, nvme.MemoryRangeSetInUse) {
			// An execution over another set uses memory of this one too, as the program that all share.
			return nil, uint16(s.slot), nil
		}
		if err != nil {
			return nil, 0, err
		}
		s.sets = slices.Delete(s.sets, i, i+1)
	}
	id, err := s.create(ctx, a, ranges)
	if isStatus(err, nvme.MemoryRangeSetsExceeded) ||
		isStatus(err, nvme.InsufficientResources) ||
		isStatus(err, nvme.InvalidMemoryRangeSet) {
		return nil, uint16(s.slot), nil
	}
	if err != nil {
		return nil, 0, err
	}
	set := &rangeSet{ranges: slices.Clone(ranges), id: id, uses: 1}
	s.sets = append(s.sets, set)
	return set, uint16(s.slot), nil
}

func (s *standardSet) giveBack(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	a := s.d.anyAssociation()
	for _, set := range s.sets {
		errs = append(errs, s.drop(ctx, a, set.id))
	}
	for _, r := range s.reserved {
		errs = append(errs, s.drop(ctx, a, r.id))
	}
	s.sets, s.reserved = nil, make(map[uint64]reservation)
	return errors.Join(errs...)
}

func (s *standardSet) done(set *rangeSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set.uses--
}
