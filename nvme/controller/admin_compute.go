package controller

import (
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// onCompute reports whether an admin command of the Computational Programs set names a namespace of it.
func (c *Controller) onCompute(cmd *nvme.Command) bool {
	_, ok := c.sub.regionOfNamespace(cmd.NSID())
	return ok
}

func checkLoadProgram(c *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	l := cs.ParseLoad(cmd)
	switch {
	case !c.onCompute(cmd):
		return 0, nvme.InvalidNamespace
	case l.Unload:
		return 0, nvme.Success
	case l.Type != cs.ProgramTypeImage:
		return 0, nvme.InvalidProgramType
	case l.Identity != cs.IdentityPUID || l.Len == 0:
		return 0, nvme.InvalidField
	}
	return uint64(l.Len), nvme.Success
}

func runLoadProgram(r *request) nvme.Status {
	l := cs.ParseLoad(r.cmd)
	r.pointToLogPage()
	if l.Unload {
		return r.c.sub.prog.Unload(l.Slot)
	}
	return r.c.sub.prog.LoadChunk(&r.c.owner, l.Chunk, r.data)
}

func checkImageDownload(_ *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	k := cs.ParseImageDownload(cmd)
	if k.Len == 0 {
		return 0, nvme.InvalidField
	}
	return uint64(k.Len), nvme.Success
}

// pointToLogPage makes the error information log name the log page that says why a command about images was refused.
func (r *request) pointToLogPage() {
	if r.c.sub.prog.Images() != nil {
		r.more = nvme.LogImages
	}
}

func runImageDownload(r *request) nvme.Status {
	r.pointToLogPage()
	return r.c.sub.prog.LoadChunk(&r.c.owner, cs.ParseImageDownload(r.cmd), r.data)
}

func checkImageActivate(c *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	_, st := c.sub.vendorRegion(cmd)
	return 0, st
}

func runImageActivate(r *request) nvme.Status {
	r.pointToLogPage()
	slot, test := cs.ParseImageActivate(r.cmd)
	if test {
		return r.c.sub.prog.Test(r.context(), slot)
	}
	region := int(cs.ParseRegion(r.cmd))
	st := r.c.sub.prog.Activate(r.context(), &r.c.owner, region, slot, true)
	if st.OK() {
		r.c.sub.NamespaceChanged(cs.RegionNamespace(region))
	}
	return st
}

func checkActivation(c *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	if !c.onCompute(cmd) {
		return 0, nvme.InvalidNamespace
	}
	if _, sel := cs.ParseActivation(cmd); sel > cs.SelectActivate {
		return 0, nvme.InvalidField
	}
	return 0, nvme.Success
}

func runActivation(r *request) nvme.Status {
	r.pointToLogPage()
	slot, sel := cs.ParseActivation(r.cmd)
	region, ok := r.c.sub.regionOfNamespace(r.cmd.NSID())
	switch {
	case !ok:
		return nvme.InvalidNamespace
	case sel == cs.SelectDeactivate:
		return r.c.sub.prog.Deactivate(&r.c.owner, region, slot)
	}
	return r.c.sub.prog.Activate(r.context(), &r.c.owner, region, slot, false)
}

func checkRangeSet(c *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	m := cs.ParseRangeSet(cmd)
	switch {
	case !c.onCompute(cmd):
		return 0, nvme.InvalidNamespace
	case m.Select == cs.SelectDelete:
		return 0, nvme.Success
	case m.Select != cs.SelectCreate || m.Ranges == 0:
		return 0, nvme.InvalidField
	case m.Ranges > cs.MaxRanges:
		return 0, nvme.MemoryRangesExceeded
	}
	return uint64(m.Ranges) * cs.MemoryRangeSize, nvme.Success
}

func runRangeSet(r *request) nvme.Status {
	m, c := cs.ParseRangeSet(r.cmd), r.c
	region, ok := c.sub.regionOfNamespace(r.cmd.NSID())
	if !ok {
		return nvme.InvalidNamespace
	}
	if m.Select == cs.SelectDelete {
		c.mu.Lock()
		defer c.mu.Unlock()
		if _, ok := c.findRangeSet(m.ID, region); !ok {
			return nvme.InvalidMemoryRangeSetID
		}
		if st := c.sub.slm.ReleaseSet(&c.owner, m.ID); !st.OK() {
			return st
		}
		delete(c.sets, m.ID)
		return nvme.Success
	}
	ranges := make([]cs.Range, m.Ranges)
	for i := range ranges {
		d := cs.ParseMemoryRange(r.data, i)
		if d.NSID != cs.NamespaceSLM {
			return nvme.InvalidMemoryNamespace
		}
		if d.Addr%cs.SLMGranularity != 0 || d.Len%cs.SLMGranularity != 0 {
			return nvme.InvalidMemoryRangeSet
		}
		ranges[i] = cs.Range{Addr: d.Addr, Len: uint64(d.Len)}
	}
	if st := c.sub.checkRanges(region, ranges); !st.OK() {
		return st
	}
	id, st := c.reserveSet()
	if !st.OK() {
		return st
	}
	st = c.sub.slm.ClaimSet(&c.owner, region, id, ranges) // without c.mu: it may have much memory to clear
	c.mu.Lock()
	defer c.mu.Unlock()
	if !st.OK() {
		delete(c.sets, id)
		return st
	}
	c.sets[id] = rangeSet{region, ranges}
	r.result, r.gave = uint64(id), true
	return nvme.Success
}

// reserveSet returns an identifier for a memory range set that is being created.
func (c *Controller) reserveSet() (uint16, nvme.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sets) == MaxRangeSets {
		return 0, nvme.MemoryRangeSetsExceeded
	}
	id := uint16(1)
	for {
		if _, used := c.sets[id]; !used {
			break
		}
		id++
	}
	c.sets[id] = rangeSet{}
	return id, nvme.Success
}

// findRangeSet returns a memory range set of a region. c.mu is held.
func (c *Controller) findRangeSet(id uint16, region int) (rangeSet, bool) {
	set, ok := c.sets[id]
	return set, ok && set.ranges != nil && set.region == region
}
