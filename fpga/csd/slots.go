package csd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/wasm"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
)

// slotCount is the number of image slots: one for the stock image (0), two for the deployed image and the one before it
// (1 and 2), and one for trials (3).
const slotCount = 4

// noSlot is the active slot of a drive without an active image.
const noSlot = -1

// roleOfSlot returns the purpose of a slot.
func roleOfSlot(slot int) image.Role {
	switch slot {
	case 0:
		return image.RoleStock
	case 1, 2:
		return image.RoleField
	}
	return image.RoleTrial
}

// slot is an image slot.
type slot struct {
	state  slotState
	img    *image.Image // nil: empty
	reason string       // why the slot is empty though it held an image, or why the image does not run
}

// slots are the drive's image slots, a library for its regions. The controller calls one method that changes them at a
// time, and activates no image in a region beside an execution there.
type slots struct {
	log  *slog.Logger
	path string            // of a drive in a file, else empty
	save func() error      // keeps the state; nothing for a drive in memory
	step func(name string) // tests end the process here

	threads int   // of a region of weight 1, for the log page
	weights []int // of the regions
	slm     int64 // bytes of local memory, for the log page

	mu       sync.RWMutex // guards what follows: List and ImageLog run beside everything
	trust    image.Trust
	slots    [slotCount]slot
	regions  []region
	refusals []image.Refusal
	refused  uint64 // refusals so far
	changes  uint64 // how often the log page changed
}

// mark names an image in a slot. It means nothing where the slot holds another image by now.
type mark struct {
	Slot  int      `json:"slot"`
	Image image.ID `json:"image"`
}

// newSlots puts the stock image into slot 0 and the kept images into the others, and starts the last good image of each
// region.
func newSlots(o *Options, st *state) (*slots, error) {
	s := &slots{log: o.Logger, path: o.Path, regions: make([]region, st.regionCount()), save: func() error { return nil },
		step: o.atStep, trust: st.Trust, threads: o.Threads, weights: st.regionWeights(), slm: o.SLMBytes}
	b, err := stock.Image()
	if err != nil {
		return nil, err
	}
	stock, err := image.Parse(b)
	if err != nil {
		return nil, err
	}
	s.holdImage(0, stock)
	if o.Trust != nil {
		had := slices.Contains(s.trust.RevokedImages, stock.ID)
		if err := o.Trust(&s.trust); err != nil {
			return nil, fmt.Errorf("image trust: %w", err)
		}
		// The stock image runs where no other image may: it would be called revoked and continue to run.
		if !had && slices.Contains(s.trust.RevokedImages, stock.ID) {
			return nil, fmt.Errorf("image trust: image %s is the stock image, which runs where no other may: it cannot be "+
				"revoked; load another image and activate it", stock.ID.Short())
		}
	}
	if err := s.trust.Check(); err != nil {
		return nil, err
	}
	if s.path != "" {
		for i := 1; i < slotCount; i++ {
			s.restoreSlot(i)
		}
	}
	for r := range s.regions {
		s.regions[r].active = noSlot
		if err := s.startRegion(context.Background(), r, st.keptOfRegion(r)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// restoreSlot reads the image that a slot held when the drive was closed.
func (s *slots) restoreSlot(i int) {
	// A load that was interrupted has left part of a file. On a file system that cannot be written, Remove fails even
	// where there is no such file.
	rest := slotPath(s.path, i) + partial
	if _, err := os.Lstat(rest); err == nil {
		if err := os.Remove(rest); err != nil {
			s.log.Warn("part of an image cannot be removed", "slot", i, "error", err)
		}
	}
	b, err := readBounded(slotPath(s.path, i), image.MaxSize)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var m *image.Image
	if err == nil {
		m, err = s.judgeImage(b)
	}
	if err != nil {
		s.slots[i].reason = err.Error()
		s.log.Warn("image of a slot is unusable, the slot is empty", "slot", i, "error", err)
		return
	}
	s.holdImage(i, m)
}

// holdImage puts an image into a slot. s.mu is held, or the drive is being opened.
func (s *slots) holdImage(i int, m *image.Image) {
	s.slots[i].img, s.slots[i].reason = m, ""
	s.transition(i, slotLoad)
}

// judgeImage reports whether the drive takes an image. Its error is a LoadError.
func (s *slots) judgeImage(b []byte) (*image.Image, error) {
	m, err := image.Parse(b)
	if err != nil {
		return nil, &image.LoadError{Step: image.StepFormat, Have: stock.Interface(), Err: err}
	}
	return m, s.admitImage(m)
}

// admitImage compares an image with the drive's interface and its trust.
func (s *slots) admitImage(m *image.Image) error {
	have := stock.Interface()
	if m.Interface() != have {
		return &image.LoadError{Step: image.StepInterface, Image: m.ID, Want: m.Interface(), Have: have,
			Err: image.ErrInterface}
	}
	s.mu.RLock()
	warning, err := s.trust.Judge(m)
	s.mu.RUnlock()
	var refusal *image.LoadError
	if errors.As(err, &refusal) {
		refusal.Have = have
	}
	if warning != nil {
		s.log.Warn("image is not signed by a key that this drive trusts", "image", m.ID, "error", warning)
	}
	return err
}

// prepareEngine judges the image in a slot once more, makes an engine with its units and runs its self-test. The active
// image does not change. The error is a LoadError.
func (s *slots) prepareEngine(ctx context.Context, i int) (*engine.Engine, error) {
	s.mu.RLock()
	m := s.slots[i].img
	s.mu.RUnlock()
	if m == nil {
		return nil, fmt.Errorf("slot %d is empty", i)
	}
	if i != 0 { // the stock image is part of the drive
		if err := s.admitImage(m); err != nil {
			return nil, err
		}
	}
	fail := func(step image.Step, err error) (*engine.Engine, error) {
		return nil, &image.LoadError{Step: step, Slot: i, Image: m.ID, Want: m.Interface(), Have: stock.Interface(),
			Err: err}
	}
	e, err := newEngine(m)
	if err != nil {
		return fail(image.StepBackend, err)
	}
	err = selfTest(ctx, e, m.Spec.SelfTest)
	s.mu.Lock()
	if err == nil {
		s.transition(i, slotPass)
	} else {
		s.transition(i, slotFail)
	}
	s.mu.Unlock()
	if err != nil {
		return fail(image.StepSelfTest, err)
	}
	return e, nil
}

// newEngine makes an engine with an image's units and modules.
func newEngine(m *image.Image) (*engine.Engine, error) {
	have := make(map[program.UnitRef]bool)
	for _, u := range engine.Units() {
		have[u] = true
	}
	var refs []program.UnitRef
	for _, u := range m.Spec.Units {
		ref := program.UnitRef{Unit: program.Unit(u.Number), Version: u.Version}
		if !have[ref] {
			return nil, fmt.Errorf("unit %q version %d has no backend in this drive", u.Name, u.Version)
		}
		refs = append(refs, ref)
	}
	for i := range m.Spec.Modules {
		if err := wasm.Check(m.Spec.Modules[i].Bytes); err != nil {
			return nil, fmt.Errorf("module %q: %w", m.Spec.Modules[i].Name, err)
		}
	}
	return engine.New(engine.Options{Units: refs, Modules: m.Spec.ModuleBytes()}), nil
}

// Limits implements controller.Programs.
func (s *slots) Limits() controller.ProgramLimits {
	return controller.ProgramLimits{Slots: slotCount, MaxBytes: image.MaxSize, Regions: len(s.regions),
		Weights: s.weights}
}

// List implements controller.Programs.
func (s *slots) List() []cs.Program {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]cs.Program, slotCount)
	for i := range s.slots {
		m := s.slots[i].img
		if m == nil {
			continue
		}
		list[i] = cs.Program{
			Occupancy: cs.SlotDownloaded, Active: s.slots[i].state.executes(), Type: cs.ProgramTypeImage, PUID: m.ID.PUID(),
			Bytes: uint64(len(m.Bytes())),
		}
	}
	list[0].Occupancy = cs.SlotDevice
	return list
}

// Load implements controller.Programs. The slot's file is replaced by a rename: a kill leaves the old image in it or
// the new one.
func (s *slots) Load(i int, puid uint64, b []byte) nvme.Status {
	m, err := s.judgeImage(b)
	if err == nil && puid != m.ID.PUID() {
		err = &image.LoadError{
			Step: image.StepIdentifier, Image: m.ID, Want: m.Interface(), Have: stock.Interface(),
			Err: fmt.Errorf("identifier %016x was announced, the image's is %016x", puid, m.ID.PUID()),
		}
	}
	if err == nil {
		err = s.checkVacant(i)
	}
	if err != nil {
		return s.refuseCommand("load", i, err)
	}
	s.step("image: judged")
	if s.path != "" {
		if err := replaceFile(slotPath(s.path, i), b, s.step, "image"); err != nil {
			return s.refuseCommand("load", i, &image.LoadError{Step: image.StepStore, Image: m.ID, Want: m.Interface(),
				Have: stock.Interface(), Err: err})
		}
	}
	s.step("image: kept")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holdImage(i, m)
	return nvme.Success
}

// checkVacant refuses to change the slot of an image that a region would start with. The controller refuses the active
// slots itself; this is the case where a host has deactivated the image.
func (s *slots) checkVacant(i int) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if m := s.slots[i].img; m != nil && s.isBootImage(i) {
		return &image.LoadError{
			Step: image.StepInUse, Image: m.ID, Want: m.Interface(), Have: stock.Interface(),
			Err: &image.BusyError{What: fmt.Sprintf("slot %d holds the last good image and", i)},
		}
	}
	return nil
}

// Unload implements controller.Programs.
func (s *slots) Unload(i int) nvme.Status {
	if err := s.checkVacant(i); err != nil {
		return s.refuseCommand("unload", i, err)
	}
	if s.path != "" {
		err := os.Remove(slotPath(s.path, i))
		if err == nil {
			err = wholefile.SyncFolder(filepath.Dir(s.path))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return s.refuseCommand("unload", i, &image.LoadError{Step: image.StepStore, Have: stock.Interface(), Err: err})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slots[i].img, s.slots[i].reason = nil, ""
	s.transition(i, slotUnload)
	return nvme.Success
}

// Test implements controller.ImageSlots.
func (s *slots) Test(ctx context.Context, i int) nvme.Status {
	if _, err := s.prepareEngine(ctx, i); err != nil {
		return s.refuseCommand("test", i, err)
	}
	return nvme.Success
}

// Activate implements controller.Programs. No program executes in the region meanwhile. The old image stays active
// until the new one has passed its self-test; the write of PATH.json is the moment from which on the region starts with
// the new one.
func (s *slots) Activate(ctx context.Context, number, i int) nvme.Status {
	e, err := s.prepareEngine(ctx, i)
	if err != nil {
		return s.refuseCommand("activate", i, err)
	}
	s.step("image: tested")
	s.mu.Lock()
	r := &s.regions[number]
	before := *r
	m := mark{i, s.slots[i].img.ID}
	if m != r.boot {
		r.previous, r.boot = r.boot, m
	}
	s.setExecuted(number, i, e)
	s.slots[i].reason = ""
	img := s.slots[i].img
	s.mu.Unlock()
	if err := s.save(); err != nil {
		s.undoActivation(number, before)
		return s.refuseCommand("activate", i, &image.LoadError{Step: image.StepCommit, Image: m.Image, Want: img.Interface(),
			Have: stock.Interface(), Err: err})
	}
	s.step("image: active")
	return nvme.Success
}
