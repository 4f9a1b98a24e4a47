package controller

import (
	"errors"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/programs"
	"github.com/millrace/millrace/nvme/cs"
)

// checkRanges checks the memory ranges of a program in a region without regard to which association holds them. A range
// of no bytes belongs to every region.
func (s *Subsystem) checkRanges(region int, ranges []cs.Range) nvme.Status {
	for i, a := range ranges {
		if !s.slm.Contains(a) {
			return nvme.InvalidMemoryRangeSet
		}
		if a.Len > 0 && !s.slm.InRegion(region, a) {
			return nvme.AccessDenied
		}
		for _, b := range ranges[:i] {
			if a.Overlaps(b) {
				return nvme.OverlappingMemoryRanges
			}
		}
	}
	return nvme.Success
}

// vendorRegion returns the region that a vendor command names.
func (s *Subsystem) vendorRegion(cmd *nvme.Command) (int, nvme.Status) {
	region := cs.ParseRegion(cmd)
	if region >= uint32(s.prog.Limits().Regions) {
		return 0, nvme.InvalidField
	}
	// On a drive without flash the command is sent to a namespace of computational programs: to the first, or the
	// region's.
	if of, ok := s.regionOfNamespace(cmd.NSID()); ok && of != 0 && of != int(region) {
		return 0, nvme.InvalidField
	}
	return int(region), nvme.Success
}

// enterRegion lets the request into a region, unless another association owns it.
func (r *request) enterRegion(region, slot int) nvme.Status {
	if r.c.sub.slm.OwnedByAnother(&r.c.owner, region) {
		return nvme.AccessDenied
	}
	st := r.c.sub.prog.Enter(region, slot)
	if st.OK() {
		r.c.sub.hostIO.beginExecution()
	}
	return st
}

// leaveRegion ends what enterRegion began.
func (s *Subsystem) leaveRegion(region int) {
	s.hostIO.endExecution()
	s.prog.Leave(region)
}

// executeProgram runs the program of a region over ranges that are leased, after it has set x.Input. enterRegion has
// admitted the request before.
func (r *request) executeProgram(x Execution) (st nvme.Status) {
	s := r.c.sub
	if x.Input, st = s.slm.Lent.Begin(x.Ranges, s.inputRange); !st.OK() {
		return r.failUnread(st)
	}
	if x.Input != nil {
		defer s.slm.Lent.End(x.Input)
	}
	r.result, st = s.opt.Compute.Execute(r.context(), x)
	if x.Input != nil && !x.Input.Status().OK() {
		return r.failUnread(x.Input.Status())
	}
	return st
}

func checkPreprocess(c *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	if _, st := c.sub.vendorRegion(cmd); !st.OK() {
		return 0, st
	}
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
	region, st := s.vendorRegion(r.cmd)
	if !st.OK() {
		return st
	}
	if st := s.checkRanges(region, p.Ranges); !st.OK() {
		return st
	}
	from := s.spaces.Load()
	dests, st := s.checkCopies(from, p.Copies)
	if !st.OK() {
		return st
	}
	for _, d := range dests {
		if !s.slm.InRegion(region, d) {
			return nvme.AccessDenied
		}
	}
	if st := r.accessRanges(append(dests, p.Ranges...)); !st.OK() {
		return st
	}
	if st := r.enterRegion(region, programs.AnySlot); !st.OK() {
		return st
	}
	defer s.leaveRegion(region)
	x := Execution{Region: region, Ranges: p.Ranges, Args: p.Args}
	if len(p.Copies) > 0 {
		start := s.opt.Now()
		if st := r.copyBlocks(from, p.Copies); !st.OK() {
			return st
		}
		x.Moved, x.MovedBytes = s.opt.Now().Sub(start), totalLength(dests)
	}
	return r.executeProgram(x)
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
	region, ok := s.regionOfNamespace(r.cmd.NSID())
	if !ok {
		return nvme.InvalidNamespace
	}
	var ranges []cs.Range
	if e.Set != 0 {
		r.c.mu.Lock()
		set, ok := r.c.findRangeSet(e.Set, region)
		r.c.mu.Unlock()
		if !ok {
			return nvme.InvalidMemoryRangeSetID
		}
		ranges = set.ranges
	}
	for i := range int(e.Ranges) {
		m := cs.ParseMemoryRange(r.data, i)
		if m.NSID != cs.NamespaceSLM {
			return nvme.InvalidMemoryNamespace
		}
		ranges = append(ranges, cs.Range{Addr: m.Addr, Len: uint64(m.Len)})
	}
	if st := s.checkRanges(region, ranges); !st.OK() {
		return st
	}
	if st := r.accessSet(e.Set, ranges); !st.OK() {
		return st
	}
	if st := r.enterRegion(region, int(e.Slot)); !st.OK() {
		return st
	}
	defer s.leaveRegion(region)
	return r.executeProgram(Execution{Region: region, Ranges: ranges, Args: r.data[e.Ranges*cs.MemoryRangeSize:]})
}
