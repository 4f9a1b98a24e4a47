package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

const maxImageBytes = 1 << 30

// programs drives the device's program slots: it gathers chunks, keeps activation and execution in a region apart, and
// knows which program is active in each region.
type programs struct {
	device  Programs
	images  ImageSlots                      // the device, if its slots hold images
	holders func(*Controller, int) []string // hosts that hold memory of a region, without the one that may change it
	limits  ProgramLimits                   // Regions is at least 1
	active  [cs.MaxRegions]atomic.Int32     // slot by region, -1: none

	gates [cs.MaxRegions]sync.RWMutex // held for reading by executions in a region, for writing by changes of its program

	mu    sync.Mutex // one change at a time
	loads map[uint16]*loading
}

// loading is an image that has arrived in part.
type loading struct {
	owner *Controller
	chunk cs.Chunk // size and identity, as in the first chunk
	data  []byte
}

func newPrograms(device Programs) (*programs, error) {
	p := &programs{device: device, limits: device.Limits(), loads: map[uint16]*loading{}}
	p.images, _ = device.(ImageSlots)
	if p.limits.Slots < 1 || p.limits.Slots > cs.MaxPrograms {
		return nil, fmt.Errorf("compute device: %d program slots: 1 to %d are possible", p.limits.Slots, cs.MaxPrograms)
	}
	if p.limits.MaxBytes > maxImageBytes {
		return nil, fmt.Errorf("compute device: images of %d bytes: at most %d are possible", p.limits.MaxBytes,
			maxImageBytes)
	}
	if p.limits.Regions < 0 || p.limits.Regions > cs.MaxRegions {
		return nil, fmt.Errorf("compute device: %d regions: 1 to %d are possible", p.limits.Regions, cs.MaxRegions)
	}
	p.limits.Regions = max(p.limits.Regions, 1)
	if p.limits.Weights == nil {
		p.limits.Weights = slices.Repeat([]int{1}, p.limits.Regions)
	}
	if len(p.limits.Weights) != p.limits.Regions {
		return nil, fmt.Errorf("compute device: %d weights for %d regions", len(p.limits.Weights), p.limits.Regions)
	}
	for region, w := range p.limits.Weights {
		if w < 1 || w > cs.MaxRegionWeight {
			return nil, fmt.Errorf("compute device: region %d of weight %d: 1 to %d are possible", region, w,
				cs.MaxRegionWeight)
		}
	}
	for region := range p.limits.Regions {
		p.noteActive(region)
	}
	return p, nil
}

func (p *programs) noteActive(region int) { p.active[region].Store(int32(p.device.Active(region))) }

// describeSlot describes the program in a slot.
func (p *programs) describeSlot(slot uint16) (cs.Program, nvme.Status) {
	list := p.device.List()
	if int(slot) >= p.limits.Slots || int(slot) >= len(list) {
		return cs.Program{}, nvme.InvalidProgramIndex
	}
	return list[slot], nvme.Success
}

// downloadable reports whether a slot can be loaded or emptied now. p.mu is held.
func (p *programs) downloadable(slot uint16) nvme.Status {
	e, st := p.describeSlot(slot)
	switch {
	case !st.OK():
		return st
	case slot == 0 || e.Occupancy == cs.SlotDevice:
		return nvme.ProgramNotDownloadable
	case e.Active:
		return nvme.ProgramInUse
	}
	return nvme.Success
}

// loadChunk takes one chunk, and hands the image to the device with the last.
func (p *programs) loadChunk(owner *Controller, k cs.Chunk, data []byte) nvme.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	if st := p.downloadable(k.Slot); !st.OK() {
		return st
	}
	if uint64(k.Size) > p.limits.MaxBytes {
		return nvme.ProgramTooBig
	}
	if k.Len == 0 || uint64(k.Offset)+uint64(k.Len) > uint64(k.Size) {
		return nvme.InvalidField
	}
	l := p.loads[k.Slot]
	if k.Offset == 0 {
		if l != nil && l.owner != owner {
			return nvme.InsufficientProgramSpace
		}
		l = &loading{owner: owner, chunk: k}
		p.loads[k.Slot] = l
	}
	if l == nil || l.owner != owner || int(k.Offset) != len(l.data) || k.Size != l.chunk.Size || k.PUID != l.chunk.PUID {
		return nvme.InvalidField
	}
	l.data = append(l.data, data...)
	if len(l.data) < int(k.Size) {
		return nvme.Success
	}
	delete(p.loads, k.Slot)
	return p.device.Load(int(k.Slot), k.PUID, l.data)
}

// forgetPartial drops an image that an association has loaded only in part when the association ends.
func (p *programs) forgetPartial(owner *Controller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for slot, l := range p.loads {
		if l.owner == owner {
			delete(p.loads, slot)
		}
	}
}

func (p *programs) unloadSlot(slot uint16) nvme.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	if st := p.downloadable(slot); !st.OK() {
		return st
	}
	if e, _ := p.describeSlot(slot); e.Occupancy == cs.SlotEmpty {
		return nvme.NoProgram
	}
	return p.device.Unload(int(slot))
}

// activateSlot makes a slot's program the active one of a region. Where another is active that is replaced, or refused.
func (p *programs) activateSlot(
	ctx context.Context, asks *Controller, region int, slot uint16, replace bool,
) nvme.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, st := p.describeSlot(slot)
	switch {
	case !st.OK():
		return st
	case e.Occupancy == cs.SlotEmpty:
		return nvme.NoProgram
	case p.active[region].Load() == int32(slot):
		return nvme.Success
	case p.active[region].Load() >= 0 && !replace:
		return nvme.ProgramsActivatedExceeded
	}
	if st := p.lockGate("activate", asks, region, slot); !st.OK() {
		return st
	}
	defer p.gates[region].Unlock()
	defer p.noteActive(region)
	return p.device.Activate(ctx, region, int(slot))
}

// lockGate locks the gate of a region for a change of its active program, unless a host uses the region: it executes,
// or holds memory in which a program is made ready for the region. The owner of one region of several may change its
// program while it holds memory and nothing executes.
func (p *programs) lockGate(operation string, asks *Controller, region int, slot uint16) nvme.Status {
	holders := p.holders(asks, region)
	if len(holders) == 0 && p.gates[region].TryLock() {
		return nvme.Success
	}
	if p.images != nil {
		p.images.Busy(operation, int(slot), holders)
	}
	return nvme.ProgramInUse
}

// testSlot tries a slot's image without activating it.
func (p *programs) testSlot(ctx context.Context, slot uint16) nvme.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, st := p.describeSlot(slot)
	switch {
	case !st.OK():
		return st
	case e.Occupancy == cs.SlotEmpty:
		return nvme.NoProgram
	case p.images == nil:
		return nvme.InvalidField
	}
	return p.images.Test(ctx, int(slot))
}

func (p *programs) deactivate(asks *Controller, region int, slot uint16) nvme.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, st := p.describeSlot(slot)
	switch {
	case !st.OK():
		return st
	case e.Occupancy == cs.SlotEmpty:
		return nvme.NoProgram
	case p.active[region].Load() != int32(slot):
		return nvme.ProgramNotActivated
	}
	if st := p.lockGate("deactivate", asks, region, slot); !st.OK() {
		return st
	}
	defer p.gates[region].Unlock()
	defer p.noteActive(region)
	return p.device.Deactivate(region)
}

// anySlot asks for the active program.
const anySlot = -1

// enterProgram lets an execution of a slot's program into a region, and keeps the program active there until
// leaveProgram.
func (p *programs) enterProgram(region, slot int) nvme.Status {
	p.gates[region].RLock()
	active := int(p.active[region].Load())
	st := nvme.Success
	switch {
	case active < 0 && slot == anySlot:
		st = nvme.ProgramNotActivated
	case slot != anySlot && slot != active:
		st = nvme.ProgramNotActivated
		if e, s := p.describeSlot(uint16(slot)); !s.OK() {
			st = s
		} else if e.Occupancy == cs.SlotEmpty {
			st = nvme.NoProgram
		}
	}
	if !st.OK() {
		p.gates[region].RUnlock()
	}
	return st
}

func (p *programs) leaveProgram(region int) { p.gates[region].RUnlock() }
