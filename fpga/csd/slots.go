package csd

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
)

// slotCount is the number of program slots: the stock image's, and three for images that are loaded.
const slotCount = 4

// Policy says which images a drive takes.
type Policy uint8

const (
	SignatureOff     Policy = 0 // any image; signatures are not looked at
	SignatureWarn    Policy = 1 // any image; one that no key of the drive signed is noted in the log
	SignatureRequire Policy = 2 // only images signed by a key that the drive holds
)

// slot is what a program slot holds.
type slot struct {
	img    *image.Image // nil: empty
	reason string       // why the slot is empty though it held an image
}

// slots are the drive's program slots. The controller calls one method at a time, never beside an execution.
type slots struct {
	log    *slog.Logger
	policy Policy
	keys   []ed25519.PublicKey
	path   string // of a drive in a file, else empty
	save   func() error

	mu     sync.RWMutex // guards what follows: List runs beside everything
	slots  [slotCount]slot
	active int            // -1: none
	engine *engine.Engine // of the active image; nil: none
}

// newSlots makes slots with the stock image in slot 0 and what a drive in a file kept in the others, and activates
// slot active. An image that cannot be activated any more leaves the stock image active.
func newSlots(o *Options, active int) (*slots, error) {
	s := &slots{log: o.Logger, policy: o.Policy, keys: o.Keys, path: o.Path, active: -1, save: func() error { return nil }}
	b, err := image.Stock()
	if err != nil {
		return nil, err
	}
	if s.slots[0].img, err = image.Parse(b); err != nil {
		return nil, err
	}
	if s.path != "" {
		for i := 1; i < slotCount; i++ {
			s.restore(i)
		}
	}
	if active < 0 {
		return s, nil
	}
	if err := s.start(context.Background(), active); err != nil {
		if active == 0 {
			return nil, err
		}
		s.log.Warn("active image cannot be started, the stock image takes its place", "slot", active, "error", err)
		return s, s.start(context.Background(), 0)
	}
	return s, nil
}

// restore reads the image that a slot held when the drive was closed.
func (s *slots) restore(i int) {
	b, err := readBounded(slotPath(s.path, i), image.MaxSize)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err == nil {
		s.slots[i].img, err = s.judge(b)
	}
	if err != nil {
		s.slots[i].reason = err.Error()
		s.log.Warn("image of a slot is unusable, the slot is empty", "slot", i, "error", err)
	}
}

// judge decides whether the drive takes an image.
func (s *slots) judge(b []byte) (*image.Image, error) {
	m, err := image.Parse(b)
	if err != nil {
		return nil, err
	}
	if m.Interface() != image.StockInterface() {
		return nil, fmt.Errorf("image needs interface %s, the drive has %s", m.Interface(), image.StockInterface())
	}
	if s.policy == SignatureOff {
		return m, nil
	}
	err = m.Verify(s.keys)
	if err != nil && s.policy == SignatureWarn {
		s.log.Warn("image is not signed by a key of this drive", "image", m.ID, "error", err)
		return m, nil
	}
	return m, err
}

// start tests an image and makes it the active one.
func (s *slots) start(ctx context.Context, i int) error {
	s.mu.RLock()
	m := s.slots[i].img
	s.mu.RUnlock()
	if m == nil {
		return fmt.Errorf("slot %d is empty", i)
	}
	e, err := newEngine(m)
	if err != nil {
		return err
	}
	if err := selfTest(ctx, e, m.Spec.SelfTest); err != nil {
		return fmt.Errorf("image %s: %w", m.ID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active, s.engine = i, e
	return nil
}

// newEngine makes an engine with an image's units.
func newEngine(m *image.Image) (*engine.Engine, error) {
	have := make(map[program.UnitRef]bool)
	for _, u := range engine.Units() {
		have[u] = true
	}
	var refs []program.UnitRef
	for _, u := range m.Spec.Units {
		ref := program.UnitRef{Unit: program.Unit(u.Number), Version: u.Version}
		if !have[ref] {
			return nil, fmt.Errorf("image %s: unit %q version %d has no backend in this drive", m.ID, u.Name, u.Version)
		}
		refs = append(refs, ref)
	}
	return engine.New(engine.Options{Units: refs}), nil
}

// running returns the active image's engine, nil when none is active.
func (s *slots) running() *engine.Engine {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.engine
}

// activeSlot is the number of the active slot, -1 when none is.
func (s *slots) activeSlot() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.active
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
			Occupancy: cs.SlotDownloaded, Active: i == s.active, Type: cs.ProgramTypeImage, PUID: m.ID.PUID(), Bytes: uint64(len(m.Bytes())),
		}
	}
	list[0].Occupancy = cs.SlotDevice
	return list
}

// Load implements controller.Programs.
func (s *slots) Load(i int, puid uint64, b []byte) nvme.Status {
	m, err := s.judge(b)
	switch {
	case errors.Is(err, image.ErrUnsigned):
		return s.refused("load", i, err, nvme.OperationDenied)
	case err != nil:
		return s.refused("load", i, err, nvme.InvalidProgramData)
	case puid != m.ID.PUID():
		return s.refused("load", i, fmt.Errorf("identifier %#x is not the image's, %#x", puid, m.ID.PUID()), nvme.InvalidProgramData)
	}
	if s.path != "" {
		if err := replaceFile(slotPath(s.path, i), b); err != nil {
			return s.refused("load", i, err, nvme.InternalError)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slots[i] = slot{img: m}
	return nvme.Success
}

// Unload implements controller.Programs.
func (s *slots) Unload(i int) nvme.Status {
	if s.path != "" {
		if err := os.Remove(slotPath(s.path, i)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return s.refused("unload", i, err, nvme.InternalError)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slots[i] = slot{}
	return nvme.Success
}

// Activate implements controller.Programs.
func (s *slots) Activate(ctx context.Context, i int) nvme.Status {
	s.mu.RLock()
	before, engine := s.active, s.engine
	s.mu.RUnlock()
	if err := s.start(ctx, i); err != nil {
		return s.refused("activate", i, err, nvme.InvalidProgramData)
	}
	if err := s.save(); err != nil {
		s.set(before, engine)
		return s.refused("activate", i, err, nvme.InternalError)
	}
	return nvme.Success
}

// Deactivate implements controller.Programs.
func (s *slots) Deactivate(i int) nvme.Status {
	s.mu.RLock()
	before, engine := s.active, s.engine
	s.mu.RUnlock()
	s.set(-1, nil)
	if err := s.save(); err != nil {
		s.set(before, engine)
		return s.refused("deactivate", i, err, nvme.InternalError)
	}
	return nvme.Success
}

func (s *slots) set(active int, e *engine.Engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active, s.engine = active, e
}

func (s *slots) refused(what string, i int, err error, st nvme.Status) nvme.Status {
	s.log.Warn("image refused", "operation", what, "slot", i, "error", err, "status", st.String())
	return st
}
