// Package programs drives the program slots of a device: it gathers images from their chunks, keeps activations and
// executions in a region apart, and knows which program is active in each region.
//
// Slots are safe for concurrent use. Their lock is not held while a program executes.
package programs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/slm"
	"github.com/millrace/millrace/nvme/cs"
)

const maxImageBytes = 1 << 30

// Slots are the program slots of a device as hosts use them.
type Slots struct {
	device  Device
	images  ImageSlots // the device, if its slots hold images
	holders Holders
	limits  Limits                      // Regions is at least 1
	active  [cs.MaxRegions]atomic.Int32 // slot by region, -1: none

	gates [cs.MaxRegions]sync.RWMutex // held for reading by executions in a region, for writing by changes of its program

	mu    sync.Mutex // one change at a time
	loads map[uint16]*loading
}

// loading is an image that has arrived in part.
type loading struct {
	owner *slm.Owner
	chunk cs.Chunk // size and identity, as in the first chunk
	data  []byte
}

// Holders returns the hosts that hold memory of a region, without the one that may change its program. asks is the
// association that wants the change.
type Holders func(asks *slm.Owner, region int) []string

// New returns the slots of a device. It refuses limits that no device has.
func New(device Device, holders Holders) (*Slots, error) {
	s := &Slots{device: device, holders: holders, limits: device.Limits(), loads: map[uint16]*loading{}}
	s.images, _ = device.(ImageSlots)
	if s.limits.Slots < 1 || s.limits.Slots > cs.MaxPrograms {
		return nil, fmt.Errorf("compute device: %d program slots: 1 to %d are possible", s.limits.Slots, cs.MaxPrograms)
	}
	if s.limits.MaxBytes > maxImageBytes {
		return nil, fmt.Errorf("compute device: images of %d bytes: at most %d are possible", s.limits.MaxBytes,
			maxImageBytes)
	}
	if s.limits.Regions < 0 || s.limits.Regions > cs.MaxRegions {
		return nil, fmt.Errorf("compute device: %d regions: 1 to %d are possible", s.limits.Regions, cs.MaxRegions)
	}
	s.limits.Regions = max(s.limits.Regions, 1)
	if s.limits.Weights == nil {
		s.limits.Weights = slices.Repeat([]int{1}, s.limits.Regions)
	}
	if len(s.limits.Weights) != s.limits.Regions {
		return nil, fmt.Errorf("compute device: %d weights for %d regions", len(s.limits.Weights), s.limits.Regions)
	}
	for region, w := range s.limits.Weights {
		if w < 1 || w > cs.MaxRegionWeight {
			return nil, fmt.Errorf("compute device: region %d of weight %d: 1 to %d are possible", region, w,
				cs.MaxRegionWeight)
		}
	}
	for region := range s.limits.Regions {
		s.noteActive(region)
	}
	return s, nil
}

// Limits returns the device's limits. It has a region at least.
func (s *Slots) Limits() Limits { return s.limits }

// Images returns the device as slots of images, or nil if its slots hold none.
func (s *Slots) Images() ImageSlots { return s.images }

// List describes every slot. A program is active if it is so in any region.
func (s *Slots) List() []cs.Program { return s.device.List() }

// ListOf describes every slot. A program is active if it is so in a region.
func (s *Slots) ListOf(region int) []cs.Program {
	list, active := s.device.List(), int(s.active[region].Load())
	for i := range list {
		list[i].Active = i == active
	}
	return list
}

func (s *Slots) noteActive(region int) { s.active[region].Store(int32(s.device.Active(region))) }

// describeSlot describes the program in a slot.
func (s *Slots) describeSlot(slot uint16) (cs.Program, nvme.Status) {
	list := s.device.List()
	if int(slot) >= s.limits.Slots || int(slot) >= len(list) {
		return cs.Program{}, nvme.InvalidProgramIndex
	}
	return list[slot], nvme.Success
}

// downloadable reports whether a slot can be loaded or emptied now. s.mu is held.
func (s *Slots) downloadable(slot uint16) nvme.Status {
	e, st := s.describeSlot(slot)
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

// LoadChunk takes one chunk, and hands the image to the device with the last.
func (s *Slots) LoadChunk(owner *slm.Owner, k cs.Chunk, data []byte) nvme.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.downloadable(k.Slot); !st.OK() {
		return st
	}
	if uint64(k.Size) > s.limits.MaxBytes {
		return nvme.ProgramTooBig
	}
	if k.Len == 0 || uint64(k.Offset)+uint64(k.Len) > uint64(k.Size) {
		return nvme.InvalidField
	}
	l := s.loads[k.Slot]
	if k.Offset == 0 {
		if l != nil && l.owner != owner {
			return nvme.InsufficientProgramSpace
		}
		l = &loading{owner: owner, chunk: k}
		s.loads[k.Slot] = l
	}
	if l == nil || l.owner != owner || int(k.Offset) != len(l.data) || k.Size != l.chunk.Size || k.PUID != l.chunk.PUID {
		return nvme.InvalidField
	}
	l.data = append(l.data, data...)
	if len(l.data) < int(k.Size) {
		return nvme.Success
	}
	delete(s.loads, k.Slot)
	return s.device.Load(int(k.Slot), k.PUID, l.data)
}

// ForgetPartial drops an image that an association has loaded only in part when the association ends.
func (s *Slots) ForgetPartial(owner *slm.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for slot, l := range s.loads {
		if l.owner == owner {
			delete(s.loads, slot)
		}
	}
}

// Unload empties a slot.
func (s *Slots) Unload(slot uint16) nvme.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.downloadable(slot); !st.OK() {
		return st
	}
	if e, _ := s.describeSlot(slot); e.Occupancy == cs.SlotEmpty {
		return nvme.NoProgram
	}
	return s.device.Unload(int(slot))
}

// Activate makes a slot's program the active one of a region. Where another is active that is replaced, or refused.
func (s *Slots) Activate(
	ctx context.Context, asks *slm.Owner, region int, slot uint16, replace bool,
) nvme.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, st := s.describeSlot(slot)
	switch {
	case !st.OK():
		return st
	case e.Occupancy == cs.SlotEmpty:
		return nvme.NoProgram
	case s.active[region].Load() == int32(slot):
		return nvme.Success
	case s.active[region].Load() >= 0 && !replace:
		return nvme.ProgramsActivatedExceeded
	}
	if st := s.lockGate("activate", asks, region, slot); !st.OK() {
		return st
	}
	defer s.gates[region].Unlock()
	defer s.noteActive(region)
	return s.device.Activate(ctx, region, int(slot))
}

// lockGate locks the gate of a region for a change of its active program, unless a host uses the region: it executes,
// or holds memory in which a program is made ready for the region. The owner of one region of several may change its
// program while it holds memory and nothing executes.
func (s *Slots) lockGate(operation string, asks *slm.Owner, region int, slot uint16) nvme.Status {
	holders := s.holders(asks, region)
	if len(holders) == 0 && s.gates[region].TryLock() {
		return nvme.Success
	}
	if s.images != nil {
		s.images.Busy(operation, int(slot), holders)
	}
	return nvme.ProgramInUse
}

// Test tries a slot's image without activating it.
func (s *Slots) Test(ctx context.Context, slot uint16) nvme.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, st := s.describeSlot(slot)
	switch {
	case !st.OK():
		return st
	case e.Occupancy == cs.SlotEmpty:
		return nvme.NoProgram
	case s.images == nil:
		return nvme.InvalidField
	}
	return s.images.Test(ctx, int(slot))
}

// Deactivate leaves no program active in a region, where a slot's program is.
func (s *Slots) Deactivate(asks *slm.Owner, region int, slot uint16) nvme.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, st := s.describeSlot(slot)
	switch {
	case !st.OK():
		return st
	case e.Occupancy == cs.SlotEmpty:
		return nvme.NoProgram
	case s.active[region].Load() != int32(slot):
		return nvme.ProgramNotActivated
	}
	if st := s.lockGate("deactivate", asks, region, slot); !st.OK() {
		return st
	}
	defer s.gates[region].Unlock()
	defer s.noteActive(region)
	return s.device.Deactivate(region)
}

// AnySlot asks for the active program.
const AnySlot = -1

// Enter lets an execution of a slot's program into a region, and keeps the program active there until
// Leave.
func (s *Slots) Enter(region, slot int) nvme.Status {
	s.gates[region].RLock()
	active := int(s.active[region].Load())
	st := nvme.Success
	switch {
	case active < 0 && slot == AnySlot:
		st = nvme.ProgramNotActivated
	case slot != AnySlot && slot != active:
		st = nvme.ProgramNotActivated
		if e, found := s.describeSlot(uint16(slot)); !found.OK() {
			st = found
		} else if e.Occupancy == cs.SlotEmpty {
			st = nvme.NoProgram
		}
	}
	if !st.OK() {
		s.gates[region].RUnlock()
	}
	return st
}

// Leave ends what Enter began.
func (s *Slots) Leave(region int) { s.gates[region].RUnlock() }
