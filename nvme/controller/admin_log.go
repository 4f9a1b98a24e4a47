package controller

import (
	"maps"
	"slices"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/health"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/nvme/fabrics"
)

// logRequest holds the fields of a Get Log Page.
type logRequest struct {
	lid    uint8
	csi    uint8
	retain bool // RAE: leave the event masked
	off    uint64
	length uint64
}

func parseGetLog(cmd *nvme.Command) logRequest {
	return logRequest{
		lid: uint8(cmd.DW(10)), retain: cmd.DW(10)>>15&1 != 0, csi: uint8(cmd.DW(14) >> 24), off: cmd.QW(12),
		length: (uint64(cmd.DW(10)>>16) | uint64(cmd.DW(11)&0xffff)<<16 + 1) * 4,
	}
}

func checkGetLog(c *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	l := parseGetLog(cmd)
	if l.off%4 != 0 || cmd.DW(14)>>23&1 != 0 { // an offset in entries is not supported
		return 0, nvme.InvalidField
	}
	for _, lid := range c.sub.logPages() {
		if lid == l.lid {
			return l.length, nvme.Success
		}
	}
	return 0, nvme.InvalidLogPage
}

// logPages are the log pages that there are.
func (s *Subsystem) logPages() []uint8 {
	if s.discovery != nil {
		return []uint8{nvme.LogSupported, fabrics.LogDiscovery}
	}
	lids := []uint8{nvme.LogSupported, nvme.LogErrors, nvme.LogSMART, nvme.LogFirmware, nvme.LogChangedNamespaces,
		nvme.LogEffects, nvme.LogLost}
	if s.opt.Compute != nil {
		lids = append(lids, nvme.LogPrograms, nvme.LogProgramTypes, nvme.LogMemoryRangeSets, nvme.LogVendor)
		if s.prog.Images() != nil {
			lids = append(lids, nvme.LogImages)
		}
	}
	return lids
}

func runGetLog(r *request) nvme.Status {
	l := parseGetLog(r.cmd)
	for {
		r.c.mu.Lock()
		raised := r.c.events.raised
		r.c.mu.Unlock()
		b, st := r.c.logPage(l, r.cmd.NSID())
		if !st.OK() {
			return st
		}
		if l.off > uint64(len(b)) {
			return nvme.InvalidField
		}
		if l.retain || r.c.rearmEvents(l.lid, raised) {
			clear(r.data[copy(r.data, b[l.off:]):])
			return nvme.Success
		}
	}
}

func (c *Controller) logPage(l logRequest, nsid uint32) ([]byte, nvme.Status) {
	s := c.sub
	switch l.lid {
	case nvme.LogSupported:
		return nvme.MarshalSupportedLogs(s.logPages()), nvme.Success
	case fabrics.LogDiscovery:
		return s.discovery.encodePage(), nvme.Success
	case nvme.LogErrors:
		return s.health.ErrorLog(), nvme.Success
	case nvme.LogSMART:
		if nsid != 0 && nsid != nvme.AllNamespaces { // LPA: no health of a single namespace
			return nil, nvme.InvalidField
		}
		return s.health.SMARTLog(c.criticalWarning(s.currentHealth())), nvme.Success
	case nvme.LogLost:
		return nvme.MarshalLost(s.lostBlocks()), nvme.Success
	case nvme.LogFirmware:
		f := s.firmwareLog()
		return f.Marshal(), nvme.Success
	case nvme.LogChangedNamespaces:
		c.mu.Lock()
		defer c.mu.Unlock()
		return nvme.MarshalNamespaceList(c.events.changed), nvme.Success
	case nvme.LogEffects:
		return s.effectsLog(l.csi)
	case nvme.LogPrograms:
		return cs.MarshalPrograms(s.programList(nsid)), nvme.Success
	case nvme.LogProgramTypes:
		return cs.MarshalProgramTypes([]uint8{cs.ProgramTypeImage}), nvme.Success
	case nvme.LogMemoryRangeSets:
		return c.rangeSets(nsid), nvme.Success
	case nvme.LogVendor:
		return s.vendorLog(), nvme.Success
	case nvme.LogImages:
		return s.prog.Images().ImageLog(), nvme.Success
	}
	return nil, nvme.InvalidLogPage
}

// currentHealth returns what the sensors measure, with a warning where the drive has lost blocks.
func (s *Subsystem) currentHealth() health.Sensors {
	h := s.health.Sensors()
	h.Unreliable = h.Unreliable || len(s.lostBlocks()) > 0
	return h
}

// lostBlocks are the blocks of namespace 1 that the drive has lost.
func (s *Subsystem) lostBlocks() []nvme.LostRange {
	off, n := s.opt.Lost()
	if n <= 0 {
		return nil
	}
	first, end := off/int64(s.opt.BlockSize), (off+n+int64(s.opt.BlockSize)-1)/int64(s.opt.BlockSize)
	return []nvme.LostRange{{SLBA: uint64(first), Blocks: uint64(end - first)}}
}

// firmwareLog is log page 03h: the one slot that there is, or the program slots.
func (s *Subsystem) firmwareLog() nvme.FirmwareLog {
	f := nvme.FirmwareLog{Active: 1}
	if s.prog != nil && s.prog.Images() != nil {
		f = s.prog.Images().Firmware()
	}
	f.Revisions[0] = s.opt.Firmware
	return f
}

// firmwareRevision returns the firmware revision that Identify reports: that of the active slot.
func (s *Subsystem) firmwareRevision() string {
	f := s.firmwareLog()
	return f.Revisions[max(f.Active, 1)-1]
}

// firmwareUpdates is FRMW: the first slot is read only; where program slots are firmware slots, activation needs no
// reset.
func (s *Subsystem) firmwareUpdates() uint8 {
	if s.prog == nil || s.prog.Images() == nil {
		return frmw
	}
	return 1 | uint8(min(s.prog.Limits().Slots, 7))<<1 | 1<<4
}

func (s *Subsystem) effectsLog(csi uint8) ([]byte, nvme.Status) {
	io := s.tables.io[csi]
	if io == nil {
		return nil, nvme.InvalidField
	}
	var l nvme.EffectsLog
	for op := range 256 {
		if h := s.tables.admin[op]; h != nil {
			l.Admin[op] = h.effects
		}
		if h := io[op]; h != nil {
			l.IO[op] = h.effects
		}
	}
	return l.Marshal(), nvme.Success
}

// programList is log page 82h: a program is active if it is so in the region of the namespace that the command names,
// or for another namespace in any region.
func (s *Subsystem) programList(nsid uint32) []cs.Program {
	if region, ok := s.regionOfNamespace(nsid); ok {
		return s.prog.ListOf(region)
	}
	return s.prog.List()
}

// rangeSets is log page 84h: the memory range sets of the region of the namespace that the command names, or for
// another namespace those of all regions.
func (c *Controller) rangeSets(nsid uint32) []byte {
	region, one := c.sub.regionOfNamespace(nsid)
	c.mu.Lock()
	defer c.mu.Unlock()
	var sets []cs.MemoryRangeSet
	for _, id := range slices.Sorted(maps.Keys(c.sets)) {
		if set := c.sets[id]; set.ranges != nil && (!one || set.region == region) {
			sets = append(sets, cs.MemoryRangeSet{ID: id, Ranges: set.ranges})
		}
	}
	return cs.MarshalRangeSets(sets)
}

// vendorLog is the device's log with what the controller knows better: movement and memory.
func (s *Subsystem) vendorLog() []byte {
	var l cs.Log
	if err := l.Unmarshal(s.opt.Compute.Log()); err != nil {
		s.log.Error("vendor log of the compute device", "error", err)
		l = cs.Log{}
	}
	l.Backend = s.opt.Compute.BackendName()
	m := &s.health.Moves
	l.FlashToDRAM, l.DRAMToHost = m.FlashToDRAM.Counters(), m.DRAMToHost.Counters()
	l.HostToDRAM = m.HostToDRAM.Counters()
	l.FlashLent = m.FlashLent.Counters()
	l.SLMBytes, l.SLMReserved = s.slm.Size(), s.slm.Reserved()
	if s.hostIO != nil {
		l.HostIOShare = uint8(s.opt.HostIOShare)
	}
	return l.Marshal()
}
