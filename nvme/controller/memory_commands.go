package controller

import (
	"encoding/binary"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/slm"
	"github.com/millrace/millrace/nvme/cs"
)

// accessRanges begins the command's access to ranges, which ends with the command. It is called once a command.
func (r *request) accessRanges(ranges []cs.Range) nvme.Status { return r.accessSet(0, ranges) }

// accessSet begins the command's access to the ranges of a memory range set.
func (r *request) accessSet(set uint16, ranges []cs.Range) nvme.Status {
	r.access = slm.Access{Owner: &r.c.owner, Ranges: ranges, Set: set}
	st := r.c.sub.slm.BeginAccess(&r.access)
	if !st.OK() {
		r.access.Owner = nil
	}
	return st
}

// checkMemory checks Fetch and Store, or Memory Read and Memory Write, of addresses and lengths that are multiples of
// granularity.
func checkMemory(granularity uint64) func(*Controller, *namespace, *nvme.Command) (uint64, nvme.Status) {
	return func(c *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
		m := cs.ParseMemory(cmd)
		n := uint64(m.Len)
		switch {
		case n == 0 || n > MDTS || n%granularity != 0 || m.Addr%granularity != 0:
			return 0, nvme.InvalidField
		case !c.sub.slm.Contains(cs.Range{Addr: m.Addr, Len: n}):
			return 0, nvme.LBAOutOfRange
		}
		return n, nvme.Success
	}
}

func runFetch(r *request) nvme.Status {
	m := cs.ParseMemory(r.cmd)
	span := cs.Range{Addr: m.Addr, Len: uint64(m.Len)}
	start := r.c.sub.opt.Now()
	if st := r.accessRanges([]cs.Range{span}); !st.OK() {
		return st
	}
	if st := r.c.sub.slm.Lent.CopyPending(span); !st.OK() {
		return r.failUnread(st)
	}
	copy(r.data, r.c.sub.slm.Bytes(span))
	r.c.sub.health.Moves.DRAMToHost.Add(span.Len, r.c.sub.opt.Now().Sub(start))
	return nvme.Success
}

func runStore(r *request) nvme.Status {
	m := cs.ParseMemory(r.cmd)
	span := cs.Range{Addr: m.Addr, Len: uint64(m.Len)}
	start := r.c.sub.opt.Now()
	if st := r.accessRanges([]cs.Range{span}); !st.OK() {
		return st
	}
	r.c.sub.slm.Lent.Overwrite(span)
	copy(r.c.sub.slm.Bytes(span), r.data)
	r.c.sub.health.Moves.HostToDRAM.Add(span.Len, r.c.sub.opt.Now().Sub(start))
	return nvme.Success
}

func checkMemoryFill(c *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	m := cs.ParseMemory(cmd)
	switch {
	case m.Len == 0 || m.Len%cs.SLMGranularity != 0 || m.Addr%cs.SLMGranularity != 0:
		return 0, nvme.InvalidField
	case !c.sub.slm.Contains(cs.Range{Addr: m.Addr, Len: uint64(m.Len)}):
		return 0, nvme.LBAOutOfRange
	}
	return 0, nvme.Success
}

func runMemoryFill(r *request) nvme.Status {
	m := cs.ParseMemory(r.cmd)
	span := cs.Range{Addr: m.Addr, Len: uint64(m.Len)}
	if st := r.accessRanges([]cs.Range{span}); !st.OK() {
		return st
	}
	r.c.sub.slm.Lent.Overwrite(span)
	b := r.c.sub.slm.Bytes(span)
	binary.LittleEndian.PutUint32(b, r.cmd.DW(13))
	for n := cs.SLMGranularity; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
	return nvme.Success
}

// copySource returns the namespace that blocks are copied from.
func (s *Subsystem) copySource(from *spaces, nsid uint32) (*namespace, nvme.Status) {
	if ns := from.blockNamespace(nsid); ns != nil {
		return ns, nvme.Success
	}
	if _, ok := s.computeSet(nsid); ok {
		return nil, nvme.IncompatibleNamespace
	}
	return nil, nvme.InvalidNamespace
}

// checkCopies checks copies of blocks of some namespaces into memory, and returns where they land.
func (s *Subsystem) checkCopies(from *spaces, copies []cs.Copy) ([]cs.Range, nvme.Status) {
	dests := make([]cs.Range, len(copies))
	var total uint64
	for i, k := range copies {
		ns, st := s.copySource(from, k.NSID)
		if !st.OK() {
			return nil, st
		}
		if k.NLB == 0 {
			return nil, nvme.InvalidField
		}
		if st := ns.checkBlocks(k.SLBA, uint64(k.NLB)); !st.OK() {
			return nil, st
		}
		dests[i] = cs.Range{Addr: k.Dest, Len: uint64(k.NLB) << ns.shift}
		if !s.slm.Contains(dests[i]) {
			return nil, nvme.LBAOutOfRange
		}
		// A copy of more bytes than the memory has would only keep the drive busy.
		if total += dests[i].Len; total > s.slm.Size() {
			return nil, nvme.SizeLimitExceeded
		}
	}
	return dests, nvme.Success
}

// copyBlocks moves blocks from flash into memory, peer to peer: no host memory is touched. Copies of blocks that the
// flash lends are put off. from are the namespaces that checkCopies saw.
func (r *request) copyBlocks(from *spaces, copies []cs.Copy) nvme.Status {
	s := r.c.sub
	start := s.opt.Now()
	var moved, lent uint64
	defer func() {
		took := s.opt.Now().Sub(start)
		if lent > 0 && moved == 0 {
			s.health.Moves.FlashLent.Add(lent, took)
			return
		}
		s.health.Moves.FlashToDRAM.Add(moved, took)
		if lent > 0 {
			s.health.Moves.FlashLent.Add(lent, 0)
		}
	}()
	for _, k := range copies {
		m, l, st := r.copyFrom(from.blockNamespace(k.NSID), k)
		moved, lent = moved+m, lent+l
		if !st.OK() {
			return st
		}
	}
	return nvme.Success
}

// copyFrom moves the blocks of one copy, and returns how many bytes it moved and how many it lent.
func (r *request) copyFrom(ns *namespace, k cs.Copy) (moved, lent uint64, st nvme.Status) {
	if !ns.enterFlash() {
		return 0, 0, nvme.InvalidNamespace
	}
	defer ns.leaveFlash()
	if st := r.interrupted(ns); !st.OK() {
		return 0, 0, st
	}
	if r.lendBlocks(ns, k) {
		return 0, uint64(k.NLB) << ns.shift, nvme.Success
	}
	span := cs.Range{Addr: k.Dest, Len: uint64(k.NLB) << ns.shift}
	r.c.sub.slm.Lent.Overwrite(span)
	off, dst := int64(k.SLBA<<ns.shift), r.c.sub.slm.Bytes(span)
	for len(dst) > 0 {
		if st := r.interrupted(ns); !st.OK() {
			return moved, 0, st
		}
		n := min(len(dst), transferChunk)
		if st := r.readFlash(ns, dst[:n], off); !st.OK() {
			return moved, 0, st
		}
		dst, off, moved = dst[n:], off+int64(n), moved+uint64(n)
	}
	return moved, 0, nvme.Success
}

func checkMemoryCopy(c *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	m := cs.ParseMemoryCopy(cmd)
	switch {
	case m.Format != cs.CopyFormatBlocks && m.Format != cs.CopyFormatMemory,
		m.Len == 0, m.Len%cs.SLMGranularity != 0, m.Dest%cs.SLMGranularity != 0:
		return 0, nvme.InvalidField
	case !c.sub.slm.Contains(cs.Range{Addr: m.Dest, Len: m.Len}):
		return 0, nvme.LBAOutOfRange
	}
	return uint64(m.Sources) * cs.CopySourceSize, nvme.Success
}

func runMemoryCopy(r *request) nvme.Status {
	m := cs.ParseMemoryCopy(r.cmd)
	if m.Format == cs.CopyFormatMemory {
		return r.copyMemory(m)
	}
	from := r.c.sub.spaces.Load()
	copies := make([]cs.Copy, m.Sources)
	dest, left := m.Dest, m.Len
	for i := range copies {
		b := cs.ParseBlockSource(r.data, i)
		ns, st := r.c.sub.copySource(from, b.NSID)
		if !st.OK() {
			return st
		}
		n := uint64(b.Blocks) << ns.shift
		if n > left {
			return nvme.InvalidField
		}
		copies[i] = cs.Copy{NSID: b.NSID, NLB: b.Blocks, SLBA: b.SLBA, Dest: dest}
		dest, left = dest+n, left-n
	}
	if left != 0 {
		return nvme.InvalidField
	}
	dests, st := r.c.sub.checkCopies(from, copies)
	if !st.OK() {
		return st
	}
	if st := r.accessRanges(dests); !st.OK() {
		return st
	}
	st = r.copyBlocks(from, copies)
	if st.OK() {
		for i := range dests {
			if region, ok := r.c.sub.slm.RegionOf(dests[i]); ok {
				r.c.sub.health.Moves.Copied[region].Add(dests[i].Len)
			}
		}
	}
	return st
}

// totalLength returns the bytes of all ranges together.
func totalLength(ranges []cs.Range) (n uint64) {
	for i := range ranges {
		n += ranges[i].Len
	}
	return n
}

// copyMemory moves bytes inside memory.
func (r *request) copyMemory(m cs.MemoryCopy) nvme.Status {
	dest, left := cs.Range{Addr: m.Dest, Len: m.Len}, m.Len
	ranges := make([]cs.Range, m.Sources, m.Sources+1)
	for i := range ranges {
		b := cs.ParseMemorySource(r.data, i)
		ranges[i] = cs.Range{Addr: b.Addr, Len: uint64(b.Len)}
		switch {
		case b.NSID != cs.NamespaceSLM:
			return nvme.InvalidMemoryNamespace
		case uint64(b.Len) > left || b.Len == 0 || b.Len%cs.SLMGranularity != 0 || b.Addr%cs.SLMGranularity != 0:
			return nvme.InvalidField
		case !r.c.sub.slm.Contains(ranges[i]):
			return nvme.LBAOutOfRange
		case ranges[i].Overlaps(dest):
			return nvme.OverlappingIORange
		}
		left -= uint64(b.Len)
	}
	if left != 0 {
		return nvme.InvalidField
	}
	if st := r.accessRanges(append(ranges, dest)); !st.OK() {
		return st
	}
	if st := r.c.sub.slm.Lent.CopyPending(ranges...); !st.OK() {
		return r.failUnread(st)
	}
	r.c.sub.slm.Lent.Overwrite(dest)
	at := m.Dest
	for _, src := range ranges {
		copy(r.c.sub.slm.Bytes(cs.Range{Addr: at, Len: src.Len}), r.c.sub.slm.Bytes(src))
		at += src.Len
	}
	return nvme.Success
}

func checkReserve(c *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	_, st := c.sub.vendorRegion(cmd)
	return 0, st
}

func runReserve(r *request) nvme.Status {
	addr, st := r.c.sub.slm.Reserve(&r.c.owner, int(cs.ParseRegion(r.cmd)), cs.ParseReservation(r.cmd))
	r.result, r.gave = addr, true
	return st
}

func runRelease(r *request) nvme.Status {
	return r.c.sub.slm.Release(&r.c.owner, cs.ParseReservation(r.cmd))
}
