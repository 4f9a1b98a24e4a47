package csd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/wasm"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
)

// slotCount is the number of image slots: one for the stock image (0), two for the deployed image and the one before it
// (1 and 2), and one for trials (3).
const slotCount = 4

// noSlot is the active slot of a drive without an active image.
const noSlot = -1

// role returns the purpose of a slot.
func role(slot int) image.Role {
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

// slots are the drive's image slots. The controller calls one method that changes them at a time, and activates no
// image beside an execution.
type slots struct {
	log  *slog.Logger
	path string            // of a drive in a file, else empty
	save func() error      // keeps the state; nothing for a drive in memory
	step func(name string) // tests end the process here

	mu       sync.RWMutex // guards what follows: List and ImageLog run beside everything
	trust    image.Trust
	slots    [slotCount]slot
	active   int            // the slot whose image executes; noSlot: none
	engine   *engine.Engine // of the active image; nil: none
	boot     mark           // the last image that was active and good: the drive starts with it
	previous mark           // the last good image before boot, to which a rollback goes
	refusals []image.Refusal
	refused  uint64 // refusals so far
	changes  uint64 // how often the log page changed
}

// mark names an image in a slot. It means nothing where the slot holds another image by now.
type mark struct {
	Slot  int      `json:"slot"`
	Image image.ID `json:"image"`
}

// newSlots puts the stock image into slot 0 and the kept images into the others, and starts the last good image.
func newSlots(o *Options, st *state) (*slots, error) {
	s := &slots{log: o.Logger, path: o.Path, active: noSlot, save: func() error { return nil }, step: o.atStep,
		trust: st.Trust}
	b, err := image.Stock()
	if err != nil {
		return nil, err
	}
	stock, err := image.Parse(b)
	if err != nil {
		return nil, err
	}
	s.hold(0, stock)
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
			s.restore(i)
		}
	}
	return s, s.start(context.Background(), st)
}

// restore reads the image that a slot held when the drive was closed.
func (s *slots) restore(i int) {
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
		m, err = s.judge(b)
	}
	if err != nil {
		s.slots[i].reason = err.Error()
		s.log.Warn("image of a slot is unusable, the slot is empty", "slot", i, "error", err)
		return
	}
	s.hold(i, m)
}

// hold puts an image into a slot. s.mu is held, or the drive is being opened.
func (s *slots) hold(i int, m *image.Image) {
	s.slots[i].img, s.slots[i].reason = m, ""
	s.transition(i, slotLoad)
}

// start activates the last good image: the image that was active, else the image before it, else the stock image.
func (s *slots) start(ctx context.Context, st *state) error {
	s.boot, s.previous = s.lastGood(st), st.Previous
	for _, m := range []mark{s.boot, s.previous} {
		if m.Slot == 0 {
			break
		}
		e, err := s.ready(ctx, m)
		if err == nil {
			if m != s.boot {
				s.boot, s.previous = m, mark{}
			}
			s.run(m.Slot, e)
			return nil
		}
		s.slots[m.Slot].reason = err.Error()
		s.log.Warn("image cannot be started, an earlier one takes its place", "slot", m.Slot, "error", err)
	}
	e, err := s.prepare(ctx, 0)
	if err != nil {
		return err
	}
	if s.boot.Slot != 0 { // neither it nor the image before it can be started
		s.previous = mark{}
	}
	s.boot = mark{0, s.slots[0].img.ID}
	s.run(0, e)
	return nil
}

// lastGood returns the image to start with.
func (s *slots) lastGood(st *state) mark {
	m := mark{max(st.Active, 0), st.Image}
	if img := s.slots[m.Slot].img; img != nil && (m.Slot == 0 || m.Image == (image.ID{})) {
		m.Image = img.ID // the stock image is this build's; version 1 named the slot only
	}
	return m
}

// ready tests the image that a mark names, and returns its engine.
func (s *slots) ready(ctx context.Context, m mark) (*engine.Engine, error) {
	switch img := s.slots[m.Slot].img; {
	case img == nil && s.slots[m.Slot].reason != "":
		return nil, errors.New(s.slots[m.Slot].reason)
	case img == nil:
		return nil, fmt.Errorf("slot %d is empty", m.Slot)
	case img.ID != m.Image:
		return nil, fmt.Errorf("slot %d holds image %s, not %s, which ran", m.Slot, img.ID.Short(), m.Image.Short())
	}
	return s.prepare(ctx, m.Slot)
}

// judge reports whether the drive takes an image. Its error is a LoadError.
func (s *slots) judge(b []byte) (*image.Image, error) {
	m, err := image.Parse(b)
	if err != nil {
		return nil, &image.LoadError{Step: image.StepFormat, Have: image.StockInterface(), Err: err}
	}
	return m, s.admit(m)
}

// admit compares an image with the drive's interface and its trust.
func (s *slots) admit(m *image.Image) error {
	have := image.StockInterface()
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

// prepare judges the image in a slot once more, makes an engine with its units and runs its self-test. The active image
// does not change. The error is a LoadError.
func (s *slots) prepare(ctx context.Context, i int) (*engine.Engine, error) {
	s.mu.RLock()
	m := s.slots[i].img
	s.mu.RUnlock()
	if m == nil {
		return nil, fmt.Errorf("slot %d is empty", i)
	}
	if i != 0 { // the stock image is part of the drive
		if err := s.admit(m); err != nil {
			return nil, err
		}
	}
	fail := func(step image.Step, err error) (*engine.Engine, error) {
		return nil, &image.LoadError{Step: step, Slot: i, Image: m.ID, Want: m.Interface(), Have: image.StockInterface(),
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

// running returns the active image and its engine, nil when none is active.
func (s *slots) running() (*engine.Engine, *image.Image) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.engine == nil {
		return nil, nil
	}
	return s.engine, s.slots[s.active].img
}

// run makes the image of a slot, with its engine, the executing image.
func (s *slots) run(i int, e *engine.Engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.execute(i, e)
}

// Limits implements controller.Programs.
func (s *slots) Limits() controller.ProgramLimits {
	return controller.ProgramLimits{Slots: slotCount, MaxBytes: image.MaxSize}
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
			Occupancy: cs.SlotDownloaded, Active: i == s.active, Type: cs.ProgramTypeImage, PUID: m.ID.PUID(),
			Bytes: uint64(len(m.Bytes())),
		}
	}
	list[0].Occupancy = cs.SlotDevice
	return list
}

// Load implements controller.Programs. The slot's file is replaced by a rename: a kill leaves the old image in it or
// the new one.
func (s *slots) Load(i int, puid uint64, b []byte) nvme.Status {
	m, err := s.judge(b)
	if err == nil && puid != m.ID.PUID() {
		err = &image.LoadError{
			Step: image.StepIdentifier, Image: m.ID, Want: m.Interface(), Have: image.StockInterface(),
			Err: fmt.Errorf("identifier %016x was announced, the image's is %016x", puid, m.ID.PUID()),
		}
	}
	if err == nil {
		err = s.vacant(i)
	}
	if err != nil {
		return s.refuse("load", i, err)
	}
	s.step("image: judged")
	if s.path != "" {
		if err := replaceFile(slotPath(s.path, i), b, s.step, "image"); err != nil {
			return s.refuse("load", i, &image.LoadError{Step: image.StepStore, Image: m.ID, Want: m.Interface(),
				Have: image.StockInterface(), Err: err})
		}
	}
	s.step("image: kept")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold(i, m)
	return nvme.Success
}

// vacant refuses to change the slot of the image that the drive would start with. The controller refuses the active
// slot itself; this is the case where a host has deactivated the image.
func (s *slots) vacant(i int) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if m := s.slots[i].img; m != nil && i == s.boot.Slot {
		return &image.LoadError{
			Step: image.StepInUse, Image: m.ID, Want: m.Interface(), Have: image.StockInterface(),
			Err: &image.BusyError{What: fmt.Sprintf("slot %d holds the last good image and", i)},
		}
	}
	return nil
}

// Unload implements controller.Programs.
func (s *slots) Unload(i int) nvme.Status {
	if err := s.vacant(i); err != nil {
		return s.refuse("unload", i, err)
	}
	if s.path != "" {
		err := os.Remove(slotPath(s.path, i))
		if err == nil {
			err = syncDir(slotPath(s.path, i))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return s.refuse("unload", i, &image.LoadError{Step: image.StepStore, Have: image.StockInterface(), Err: err})
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
	if _, err := s.prepare(ctx, i); err != nil {
		return s.refuse("test", i, err)
	}
	return nvme.Success
}

// Activate implements controller.Programs. No program executes meanwhile. The old image stays active until the new one
// has passed its self-test; the write of PATH.json is the moment from which on the drive starts with the new one.
func (s *slots) Activate(ctx context.Context, i int) nvme.Status {
	e, err := s.prepare(ctx, i)
	if err != nil {
		return s.refuse("activate", i, err)
	}
	s.step("image: tested")
	s.mu.Lock()
	before := s.position()
	m := mark{i, s.slots[i].img.ID}
	if m != s.boot {
		s.previous, s.boot = s.boot, m
	}
	s.execute(i, e)
	s.slots[i].reason = ""
	img := s.slots[i].img
	s.mu.Unlock()
	if err := s.save(); err != nil {
		s.back(before)
		return s.refuse("activate", i, &image.LoadError{Step: image.StepCommit, Image: m.Image, Want: img.Interface(),
			Have: image.StockInterface(), Err: err})
	}
	s.step("image: active")
	return nvme.Success
}

// Deactivate implements controller.Programs. It is not kept: a drive starts with its last good image.
func (s *slots) Deactivate(int) nvme.Status {
	s.run(noSlot, nil)
	return nvme.Success
}

// position is the state that a failed activation is taken back to.
type position struct {
	active         int
	engine         *engine.Engine
	boot, previous mark
}

// position returns the current state of the slots. s.mu is held.
func (s *slots) position() position { return position{s.active, s.engine, s.boot, s.previous} }

func (s *slots) back(p position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.execute(p.active, p.engine)
	s.boot, s.previous = p.boot, p.previous
}

// keep puts into the state what the drive starts with next time.
func (s *slots) keep(st *state) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st.Active, st.Image, st.Previous, st.Trust = s.boot.Slot, s.boot.Image, s.previous, s.trust
}
