package controller

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// checkRanges checks a program's memory ranges without regard to which association holds them.
func (s *Subsystem) checkRanges(ranges []cs.Range) nvme.Status {
	for i, a := range ranges {
		if !s.slm.inside(a) {
			return nvme.InvalidMemoryRangeSet
		}
		for _, b := range ranges[:i] {
			if a.Overlaps(b) {
				return nvme.OverlappingMemoryRanges
			}
		}
	}
	return nvme.Success
}

// execute runs the program over ranges that are leased. enter has admitted the request before.
func (r *request) execute(ranges []cs.Range, args []byte) nvme.Status {
	s, ctx := r.c.sub, r.context()
	if in := s.slm.lent.begin(ranges, s.inputRange); in != nil {
		defer s.slm.lent.end(in)
		ctx = context.WithValue(ctx, inputKey{}, in)
	}
	v, st := s.opt.Compute.Execute(ctx, ranges, args)
	r.result = v
	return st
}

func checkPreprocess(_ *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	n := uint64(cmd.DataLength())
	if n < cs.PreprocessHeader {
		return 0, nvme.InvalidField
	}
	return n, nvme.Success
}

// runPreprocess does the work of Memory Copy and Execute Program in one command. Everything is checked before a byte
// moves. The moves are made here, not in the engine's thread, so that those of one command pass another's execution.
func runPreprocess(r *request) nvme.Status {
	var p cs.Preprocess
	s := r.c.sub
	if err := p.Unmarshal(r.data); err != nil {
		s.log.Debug("preprocess", "cntlid", r.c.id, "error", err)
		if errors.Is(err, cs.ErrRanges) {
			return nvme.MemoryRangesExceeded
		}
		return nvme.InvalidField
	}
	if st := s.checkRanges(p.Ranges); !st.OK() {
		return st
	}
	from := s.spaces.Load()
	dests, st := s.checkCopies(from, p.Copies)
	if !st.OK() {
		return st
	}
	if st := r.accessRanges(append(dests, p.Ranges...)); !st.OK() {
		return st
	}
	if st := s.prog.enter(anySlot); !st.OK() {
		return st
	}
	defer s.prog.leave()
	if len(p.Copies) > 0 {
		start := s.opt.Now()
		if st := r.copyBlocks(from, p.Copies); !st.OK() {
			return st
		}
		moved := movedBefore{took: s.opt.Now().Sub(start), bytes: totalLength(dests)}
		r.ctx = context.WithValue(r.ctx, movedKey{}, moved)
	}
	return r.execute(p.Ranges, p.Args)
}

type movedKey struct{}

// movedBefore is what the copies of a Preprocess moved, and how long they took.
type movedBefore struct {
	took  time.Duration
	bytes uint64
}

// Moved returns how long the copies before an Execute took, 0 if its command had none. ctx is the context that Execute
// was given.
func Moved(ctx context.Context) time.Duration {
	m, _ := ctx.Value(movedKey{}).(movedBefore)
	return m.took
}

// MovedBytes returns how many bytes of flash the copies before an Execute moved or lent, 0 if its command had none.
func MovedBytes(ctx context.Context) uint64 {
	m, _ := ctx.Value(movedKey{}).(movedBefore)
	return m.bytes
}

func checkExecute(_ *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	e := cs.ParseExecution(cmd)
	n := uint64(e.DataLen)
	if n == 0 { // Linux's passthrough cannot set dword 4
		n = uint64(cmd.DataLength())
	}
	switch {
	case e.Ranges > cs.MaxRanges:
		return 0, nvme.MemoryRangesExceeded
	case e.Set != 0 && e.Ranges != 0, n < uint64(e.Ranges)*cs.MemoryRangeSize:
		return 0, nvme.InvalidField
	}
	return n, nvme.Success
}

func runExecute(r *request) nvme.Status {
	e, s := cs.ParseExecution(r.cmd), r.c.sub
	var ranges []cs.Range
	if e.Set != 0 {
		r.c.mu.Lock()
		set, ok := r.c.sets[e.Set]
		r.c.mu.Unlock()
		if !ok {
			return nvme.InvalidMemoryRangeSetID
		}
		ranges = set
	}
	for i := range int(e.Ranges) {
		m := cs.ParseMemoryRange(r.data, i)
		if m.NSID != cs.NamespaceSLM {
			return nvme.InvalidMemoryNamespace
		}
		ranges = append(ranges, cs.Range{Addr: m.Addr, Len: uint64(m.Len)})
	}
	if st := s.checkRanges(ranges); !st.OK() {
		return st
	}
	if st := r.accessSet(e.Set, ranges); !st.OK() {
		return st
	}
	if st := s.prog.enter(int(e.Slot)); !st.OK() {
		return st
	}
	defer s.prog.leave()
	return r.execute(ranges, r.data[e.Ranges*cs.MemoryRangeSize:])
}
