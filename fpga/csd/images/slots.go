package images

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/millrace/millrace/fpga/csd/keptfile"
	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/wasm"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/programs"
	"github.com/millrace/millrace/nvme/cs"
)

// Count is the number of image slots: one for the stock image (0), two for the deployed image and the one before it (1
// and 2), and one for trials (3).
const Count = 4

// noSlot is the active slot of a region without an active image.
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

// Path returns the path of the image in a slot of the drive in a file.
func Path(drive string, slot int) string { return drive + ".slot" + strconv.Itoa(slot) + ".mimg" }

// Options describe the slots of a drive that is being opened.
type Options struct {
	Logger *slog.Logger
	// Drive is the path of a drive in a file. Without it the images are gone with the process.
	Drive string
	// Trust says which images the drive takes, as it was kept. ChangeTrust changes that; nil leaves it as it is.
	Trust       image.Trust
	ChangeTrust func(*image.Trust) error
	// Kept says for each region which image it starts with.
	Kept []Kept
	// Save is called to keep what Slots.Kept returns; nil keeps nothing.
	Save func() error
	// Step is called after each step of loading or activating an image: tests end the process there.
	Step func(name string)

	// RegionWeights, ThreadsPerWeight and LocalMemoryBytes are what the log page says of the regions.
	RegionWeights    []int
	ThreadsPerWeight int
	LocalMemoryBytes int64
}

// slot is an image slot.
type slot struct {
	state slotState
	img   *image.Image // nil: empty
	// reason says why the slot is empty though it held an image, or why the image does not run.
	reason string
}

// Slots are the drive's image slots, a library for its regions. The controller calls one method that changes them at a
// time, and activates no image in a region beside an execution there.
type Slots struct {
	opt Options

	mu       sync.RWMutex // guards what follows: List and ImageLog run beside everything
	trust    image.Trust
	slots    [Count]slot
	regions  []region
	refusals []image.Refusal
	refused  uint64 // refusals so far
	changes  uint64 // how often the log page changed
}

// Open puts the stock image into slot 0 and the kept images into the others, and starts the last good image of each
// region.
func Open(o Options) (*Slots, error) {
	if o.Save == nil {
		o.Save = func() error { return nil }
	}
	s := &Slots{opt: o, trust: o.Trust, regions: make([]region, len(o.Kept))}
	b, err := stock.Image()
	if err != nil {
		return nil, err
	}
	stock, err := image.Parse(b)
	if err != nil {
		return nil, err
	}
	s.holdImage(0, stock)
	if err := s.changeTrust(stock.ID); err != nil {
		return nil, fmt.Errorf("image trust: %w", err)
	}
	if o.Drive != "" {
		for i := 1; i < Count; i++ {
			s.restoreSlot(i)
		}
	}
	for r := range s.regions {
		s.regions[r].active = noSlot
		if err := s.startRegion(context.Background(), r, o.Kept[r]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// changeTrust makes the trust what Options say.
func (s *Slots) changeTrust(stock image.ID) error {
	if s.opt.ChangeTrust != nil {
		had := slices.Contains(s.trust.RevokedImages, stock)
		if err := s.opt.ChangeTrust(&s.trust); err != nil {
			return err
		}
		// The stock image runs where no other image may: it would be called revoked and continue to run.
		if !had && slices.Contains(s.trust.RevokedImages, stock) {
			return fmt.Errorf("image %s is the stock image, which runs where no other may: it cannot be revoked; load "+
				"another image and activate it", stock.Short())
		}
	}
	return s.trust.Check()
}

// restoreSlot reads the image that a slot held when the drive was closed.
func (s *Slots) restoreSlot(i int) {
	// A load that was interrupted has left part of a file. On a file system that cannot be written, Remove fails even
	// where there is no such file.
	rest := Path(s.opt.Drive, i) + keptfile.Partial
	if _, err := os.Lstat(rest); err == nil {
		if err := os.Remove(rest); err != nil {
			s.opt.Logger.Warn("part of an image cannot be removed", "slot", i, "error", err)
		}
	}
	b, err := keptfile.Read(Path(s.opt.Drive, i), image.MaxSize)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var m *image.Image
	if err == nil {
		m, err = s.judgeImage(b)
	}
	if err != nil {
		s.slots[i].reason = err.Error()
		s.opt.Logger.Warn("image of a slot is unusable, the slot is empty", "slot", i, "error", err)
		return
	}
	s.holdImage(i, m)
}

// holdImage puts an image into a slot. s.mu is held, or the drive is being opened.
func (s *Slots) holdImage(i int, m *image.Image) {
	s.slots[i].img, s.slots[i].reason = m, ""
	s.transition(i, slotLoad)
}

// judgeImage reports whether the drive takes an image. Its error is a LoadError.
func (s *Slots) judgeImage(b []byte) (*image.Image, error) {
	m, err := image.Parse(b)
	if err != nil {
		return nil, &image.LoadError{Step: image.StepFormat, Have: stock.Interface(), Err: err}
	}
	return m, s.admitImage(m)
}

// admitImage compares an image with the drive's interface and its trust.
func (s *Slots) admitImage(m *image.Image) error {
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
		s.opt.Logger.Warn("image is not signed by a key that this drive trusts", "image", m.ID, "error", warning)
	}
	return err
}

// prepareEngine judges the image in a slot once more, makes an engine with its units and runs its self-test. The active
// image does not change. The error is a LoadError.
func (s *Slots) prepareEngine(ctx context.Context, i int) (*engine.Engine, error) {
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

// Limits implements programs.Device.
func (s *Slots) Limits() programs.Limits {
	return programs.Limits{Slots: Count, MaxBytes: image.MaxSize, Regions: len(s.regions),
		Weights: s.opt.RegionWeights}
}

// List implements programs.Device.
func (s *Slots) List() []cs.Program {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]cs.Program, Count)
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

// Load implements programs.Device. The slot's file is replaced by a rename: a kill leaves the old image in it or
// the new one.
func (s *Slots) Load(i int, puid uint64, b []byte) nvme.Status {
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
	s.opt.Step("image: judged")
	if s.opt.Drive != "" {
		if err := keptfile.Replace(Path(s.opt.Drive, i), b, s.opt.Step, "image"); err != nil {
			return s.refuseCommand("load", i, &image.LoadError{Step: image.StepStore, Image: m.ID, Want: m.Interface(),
				Have: stock.Interface(), Err: err})
		}
	}
	s.opt.Step("image: kept")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holdImage(i, m)
	return nvme.Success
}

// checkVacant refuses to change the slot of an image that a region would start with. The controller refuses the active
// slots itself; this is the case where a host has deactivated the image.
func (s *Slots) checkVacant(i int) error {
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

// Unload implements programs.Device.
func (s *Slots) Unload(i int) nvme.Status {
	if err := s.checkVacant(i); err != nil {
		return s.refuseCommand("unload", i, err)
	}
	if s.opt.Drive != "" {
		err := os.Remove(Path(s.opt.Drive, i))
		if err == nil {
			err = wholefile.SyncFolder(filepath.Dir(s.opt.Drive))
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

// Test implements programs.ImageSlots.
func (s *Slots) Test(ctx context.Context, i int) nvme.Status {
	if _, err := s.prepareEngine(ctx, i); err != nil {
		return s.refuseCommand("test", i, err)
	}
	return nvme.Success
}

// Activate implements programs.Device. No program executes in the region meanwhile. The old image stays active
// until the new one has passed its self-test; the write of PATH.json is the moment from which on the region starts with
// the new one.
func (s *Slots) Activate(ctx context.Context, number, i int) nvme.Status {
	e, err := s.prepareEngine(ctx, i)
	if err != nil {
		return s.refuseCommand("activate", i, err)
	}
	s.opt.Step("image: tested")
	s.mu.Lock()
	r := &s.regions[number]
	before := *r
	m := Mark{i, s.slots[i].img.ID}
	if m != r.boot {
		r.previous, r.boot = r.boot, m
	}
	s.setExecuted(number, i, e)
	s.slots[i].reason = ""
	img := s.slots[i].img
	s.mu.Unlock()
	if err := s.opt.Save(); err != nil {
		s.undoActivation(number, before)
		return s.refuseCommand("activate", i, &image.LoadError{Step: image.StepCommit, Image: m.Image, Want: img.Interface(),
			Have: stock.Interface(), Err: err})
	}
	s.opt.Step("image: active")
	return nvme.Success
}
