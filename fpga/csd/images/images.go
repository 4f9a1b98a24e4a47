package images

import (
	"errors"
	"slices"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/fpga/operator/vocabulary"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// refuseCommand records why a command about images fails, and returns its status.
func (s *Slots) refuseCommand(operation string, i int, err error) nvme.Status {
	var e *image.LoadError
	if errors.As(err, &e) {
		e.Slot = i
	}
	st := refusalStatus(err)
	s.opt.Logger.Warn("image refused", "operation", operation, "slot", i, "error", err, "status", st.String())
	s.noteRefusal(image.NoteRefusal(operation, i, err))
	return st
}

// noteRefusal records a refusal for the log page.
func (s *Slots) noteRefusal(f image.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused++
	s.changes++
	f.Number = s.refused
	s.refusals = append([]image.Refusal{f}, s.refusals[:min(len(s.refusals), image.MaxRefusals-1)]...)
}

// refusalStatus returns the status by which a host that does not read the log page learns the kind of a refusal.
func refusalStatus(err error) nvme.Status {
	var e *image.LoadError
	if !errors.As(err, &e) {
		return nvme.NoProgram
	}
	switch e.Step {
	case image.StepRevocation, image.StepSignature:
		return nvme.OperationDenied
	case image.StepInUse:
		return nvme.ProgramInUse
	case image.StepStore, image.StepCommit:
		return nvme.InternalError
	}
	return nvme.InvalidProgramData
}

// Busy implements programs.ImageSlots.
func (s *Slots) Busy(operation string, i int, holders []string) {
	e := &image.LoadError{Step: image.StepInUse, Have: stock.Interface(), Err: &image.BusyError{Holders: holders}}
	s.mu.RLock()
	if i < Count && s.slots[i].img != nil {
		e.Image, e.Want = s.slots[i].img.ID, s.slots[i].img.Interface()
	}
	s.mu.RUnlock()
	s.refuseCommand(operation, i, e)
}

// Firmware implements programs.ImageSlots: the revision of an image is the first 8 hexadecimal digits of its id. The
// page has room for one active slot, which is region 0's. A drive without an active image runs what slot 1 stands for,
// its own firmware.
func (s *Slots) Firmware() nvme.FirmwareLog {
	s.mu.RLock()
	defer s.mu.RUnlock()
	first := &s.regions[0]
	f := nvme.FirmwareLog{Active: uint8(max(first.active, 0)) + 1}
	if first.boot.Slot != first.active {
		f.Next = uint8(first.boot.Slot) + 1
	}
	for i := 1; i < Count; i++ {
		if m := s.slots[i].img; m != nil {
			f.Revisions[i] = m.ID.String()[:8]
		}
	}
	return f
}

// ImageLog implements programs.ImageSlots.
func (s *Slots) ImageLog() []byte {
	r, changes := s.logPage()
	b, err := r.Marshal(changes)
	if err != nil {
		s.opt.Logger.Error("log page of images", "error", err)
		return make([]byte, image.LogPageHeader)
	}
	return b
}

// logPage returns the drive's log page of its images, and how often the content of the page has changed.
func (s *Slots) logPage() (*image.LogPage, uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := &image.LogPage{
		Platform: stock.Platform, Interface: stock.Interface(), Policy: s.trust.Policy,
		RevokedKeys: s.trust.RevokedKeys, RevokedImages: s.trust.RevokedImages, Refusals: s.refusals,
	}
	for _, k := range s.trust.Keys {
		r.Keys = append(r.Keys, image.KeyOf(k))
	}
	for i := range s.slots {
		state := s.slots[i].state
		t := image.Slot{
			Slot: i, Role: roleOfSlot(i), Active: state.executes(), Tested: state.hasPassedTest(), Reason: s.slots[i].reason,
		}
		if m := s.slots[i].img; m != nil {
			t.Lookups = offersLookups(m)
			t.Image, t.Interface, t.Bytes = m.ID, m.Interface(), len(m.Bytes())
			at := Mark{i, m.ID}
			t.Boot = slices.ContainsFunc(s.regions, func(r region) bool { return r.boot == at })
			t.Previous = slices.ContainsFunc(s.regions, func(r region) bool { return r.previous == at })
			for k := range m.Spec.Modules {
				x := &m.Spec.Modules[k]
				t.Modules = append(t.Modules, image.SlotModule{Name: x.Name, SHA256: x.Digest()})
			}
			if m.Signature != nil {
				t.SignedBy = m.Signature.Key
			}
			t.Standing = image.StandingStock
			if i != 0 {
				t.Standing, _ = s.trust.Standing(m)
			}
		}
		r.Slots = append(r.Slots, t)
	}
	for number := range s.regions {
		g := &s.regions[number]
		window := cs.RegionWindow(uint64(s.opt.LocalMemoryBytes), s.opt.RegionWeights, number)
		r.Regions = append(r.Regions, image.Region{
			Region: number, Slot: g.active, Boot: g.boot.Slot, Previous: s.slotOfMark(g.previous),
			Threads: s.opt.ThreadsPerWeight * s.opt.RegionWeights[number], SLMAddress: window.Addr, SLMBytes: window.Len,
		})
	}
	return r, s.changes
}

// slotOfMark returns the slot that a Mark names, noSlot where the slot holds another image by now or the Mark is empty.
// s.mu is held.
func (s *Slots) slotOfMark(m Mark) int {
	if img := s.slots[m.Slot].img; m.Image == (image.ID{}) || img == nil || img.ID != m.Image {
		return noSlot
	}
	return m.Slot
}

// offersLookups reports whether an image has the unit of lookup tables.
func offersLookups(m *image.Image) bool {
	const unit = vocabulary.Unit
	return slices.ContainsFunc(m.Spec.Units, func(u image.Unit) bool {
		return u.Number == uint16(unit) && u.Version == unit.Version()
	})
}

// Page returns the drive's log page of its images.
func (s *Slots) Page() *image.LogPage {
	r, _ := s.logPage()
	return r
}
