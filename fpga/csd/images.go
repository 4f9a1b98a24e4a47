package csd

import (
	"errors"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/nvme"
)

// refuse records why a command about images fails, and returns its status.
func (s *slots) refuse(operation string, i int, err error) nvme.Status {
	var e *image.LoadError
	if errors.As(err, &e) {
		e.Slot = i
	}
	st := refusalStatus(err)
	s.log.Warn("image refused", "operation", operation, "slot", i, "error", err, "status", st.String())
	s.note(image.NoteRefusal(operation, i, err))
	return st
}

// note records a refusal for the report.
func (s *slots) note(f image.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused++
	s.generation++
	f.Number = s.refused
	s.refusals = append([]image.Refusal{f}, s.refusals[:min(len(s.refusals), image.MaxRefusals-1)]...)
}

// refusalStatus returns the status by which a host that reads no report learns the kind of a refusal.
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

// Busy implements controller.ProgramReporter.
func (s *slots) Busy(operation string, i int, holders []string) {
	e := &image.LoadError{Step: image.StepInUse, Have: image.StockInterface(), Err: &image.BusyError{Holders: holders}}
	s.mu.RLock()
	if i < slotCount && s.slots[i].img != nil {
		e.Image, e.Want = s.slots[i].img.ID, s.slots[i].img.Interface()
	}
	s.mu.RUnlock()
	s.refuse(operation, i, e)
}

// Firmware implements controller.ProgramReporter: the revision of an image is the first 8 hexadecimal digits of its id.
// A drive without an active image runs what slot 1 stands for, its own firmware.
func (s *slots) Firmware() nvme.FirmwareLog {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f := nvme.FirmwareLog{Active: uint8(max(s.active, 0)) + 1}
	if s.boot.Slot != s.active {
		f.Next = uint8(s.boot.Slot) + 1
	}
	for i := 1; i < slotCount; i++ {
		if m := s.slots[i].img; m != nil {
			f.Revisions[i] = m.ID.String()[:8]
		}
	}
	return f
}

// Report implements controller.ProgramReporter.
func (s *slots) Report() []byte {
	r, generation := s.report()
	b, err := r.Marshal(generation)
	if err != nil {
		s.log.Error("report of images", "error", err)
		return make([]byte, image.ReportHeader)
	}
	return b
}

// report returns the drive's report of its images, and the report's generation.
func (s *slots) report() (*image.Report, uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := &image.Report{
		Platform: image.StockPlatform, Interface: image.StockInterface(), Policy: s.trust.Policy,
		RevokedKeys: s.trust.RevokedKeys, RevokedImages: s.trust.RevokedImages, Refusals: s.refusals,
	}
	for _, k := range s.trust.Keys {
		r.Keys = append(r.Keys, image.KeyOf(k))
	}
	for i := range s.slots {
		state := s.slots[i].state
		t := image.SlotReport{
			Slot: i, Role: role(i), Active: state.executes(), Tested: state.tested(), Reason: s.slots[i].reason,
		}
		if m := s.slots[i].img; m != nil {
			t.Image, t.Interface, t.Bytes = m.ID, m.Interface(), len(m.Bytes())
			t.Boot, t.Previous = s.boot == mark{i, m.ID}, s.previous == mark{i, m.ID}
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
	return r, s.generation
}

// Images returns the drive's report of its images; nil for a plain drive.
func (d *Drive) Images() *image.Report {
	if d.comp == nil {
		return nil
	}
	r, _ := d.comp.slots.report()
	return r
}
