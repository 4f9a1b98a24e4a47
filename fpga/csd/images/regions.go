package images

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/nvme"
)

// Mark names an image in a slot. It means nothing where the slot holds another image by now.
type Mark struct {
	Slot  int      `json:"slot"`
	Image image.ID `json:"image"`
}

// Kept is what a drive keeps of a region: its last good image, with which it starts.
type Kept struct {
	Active int      `json:"active_slot"`  // -1 in version 1 of the state of a drive: no image was active
	Image  image.ID `json:"active_image"` // zero in version 1: the image that the slot holds
	// Previous is the image that was active before; zero: none.
	Previous Mark `json:"previous"`
}

// Check returns an error for slots that a drive does not have.
func (k *Kept) Check() error {
	if k.Active < -1 || k.Active >= Count {
		return fmt.Errorf("active slot %d: there are 0 to %d", k.Active, Count-1)
	}
	if k.Previous.Slot < 0 || k.Previous.Slot >= Count {
		return fmt.Errorf("previous slot %d: there are 0 to %d", k.Previous.Slot, Count-1)
	}
	return nil
}

// region is what a region executes, and starts with. Its engine is its own, also where another region executes the same
// image.
type region struct {
	active   int            // the slot whose image executes; noSlot: none
	engine   *engine.Engine // nil: no image is active
	boot     Mark           // the last image that was active and good: the region starts with it
	previous Mark           // the last good image before boot, to which a rollback goes
}

// startRegion activates the last good image in a region: the image that was active, else the image before it, else the
// stock image.
func (s *Slots) startRegion(ctx context.Context, number int, kept Kept) error {
	r := &s.regions[number]
	r.boot, r.previous = s.lastGoodImage(kept), kept.Previous
	for _, m := range []Mark{r.boot, r.previous} {
		if m.Slot == 0 {
			break
		}
		e, err := s.testedEngine(ctx, m)
		if err == nil {
			if m != r.boot {
				r.boot, r.previous = m, Mark{}
			}
			s.setRunning(number, m.Slot, e)
			return nil
		}
		s.slots[m.Slot].reason = err.Error()
		s.opt.Logger.Warn("image cannot be started, an earlier one takes its place", "region", number, "slot", m.Slot,
			"error", err)
	}
	e, err := s.prepareEngine(ctx, 0)
	if err != nil {
		return err
	}
	if r.boot.Slot != 0 { // neither it nor the image before it can be started
		r.previous = Mark{}
	}
	r.boot = Mark{0, s.slots[0].img.ID}
	s.setRunning(number, 0, e)
	return nil
}

// lastGoodImage returns the image to start with.
func (s *Slots) lastGoodImage(kept Kept) Mark {
	m := Mark{max(kept.Active, 0), kept.Image}
	if img := s.slots[m.Slot].img; img != nil && (m.Slot == 0 || m.Image == (image.ID{})) {
		m.Image = img.ID // the stock image is this build's; version 1 named the slot only
	}
	return m
}

// testedEngine tests the image that a Mark names, and returns its engine.
func (s *Slots) testedEngine(ctx context.Context, m Mark) (*engine.Engine, error) {
	switch img := s.slots[m.Slot].img; {
	case img == nil && s.slots[m.Slot].reason != "":
		return nil, errors.New(s.slots[m.Slot].reason)
	case img == nil:
		return nil, fmt.Errorf("slot %d is empty", m.Slot)
	case img.ID != m.Image:
		return nil, fmt.Errorf("slot %d holds image %s, not %s, which ran", m.Slot, img.ID.Short(), m.Image.Short())
	}
	return s.prepareEngine(ctx, m.Slot)
}

// Running returns the engine of a region and its active image, nil when none is active.
func (s *Slots) Running(number int) (*engine.Engine, *image.Image) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := &s.regions[number]
	if r.engine == nil {
		return nil, nil
	}
	return r.engine, s.slots[r.active].img
}

// setRunning makes the image of a slot, with its engine, the image that a region executes.
func (s *Slots) setRunning(number, i int, e *engine.Engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setExecuted(number, i, e)
}

// setExecuted makes the image of a slot the one that a region executes, with its engine; noSlot and nil: none executes.
// s.mu is held.
func (s *Slots) setExecuted(number, i int, e *engine.Engine) {
	r := &s.regions[number]
	old := r.active
	r.active, r.engine = i, e
	if old == i {
		return
	}
	s.changes++
	if old != noSlot && !s.isExecuted(old) {
		s.transition(old, slotDeactivate)
	}
	if i != noSlot && !s.slots[i].state.executes() {
		s.transition(i, slotActivate)
	}
}

// isExecuted reports whether a region executes the image of a slot. s.mu is held.
func (s *Slots) isExecuted(i int) bool {
	return slices.ContainsFunc(s.regions, func(r region) bool { return r.active == i })
}

// Active implements programs.Device.
func (s *Slots) Active(number int) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.regions[number].active
}

// isBootImage reports whether a region starts with the image in a slot. s.mu is held.
func (s *Slots) isBootImage(i int) bool {
	return slices.ContainsFunc(s.regions, func(r region) bool { return r.boot.Slot == i })
}

// Deactivate implements programs.Device. It is not kept: a region starts with its last good image.
func (s *Slots) Deactivate(number int) nvme.Status {
	s.setRunning(number, noSlot, nil)
	return nvme.Success
}

// undoActivation takes a failed activation back.
func (s *Slots) undoActivation(number int, before region) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setExecuted(number, before.active, before.engine)
	s.regions[number] = before
}

// Kept returns the trust, and for each region what it starts with next time.
func (s *Slots) Kept() (trust image.Trust, regions []Kept) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, r := range s.regions {
		regions = append(regions, Kept{r.boot.Slot, r.boot.Image, r.previous})
	}
	return s.trust, regions
}
