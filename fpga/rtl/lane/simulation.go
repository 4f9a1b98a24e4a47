package lane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/rtl/cosim"
)

// Options of a simulation.
type Options struct {
	Folder   string            // where simulators are kept
	Building func(unit string) // called before a unit's simulator is made, which takes some seconds; nil: nothing is
}

// Simulation holds the simulators of the units that programs need, and counts what went through each.
type Simulation struct {
	ctx     context.Context // ends the simulators
	options Options
	apart   bool // chains go through one unit behind the other, never through unit lane; in tests

	mu       sync.Mutex // held while a unit runs; guards what follows
	units    map[string]*simulatedUnit
	firmware map[string]bool
}

// simulatedUnit is a unit whose simulator runs.
type simulatedUnit struct {
	unit      rtl.Unit
	simulator *cosim.Simulator
	loaded    map[uint16]uint64 // what registers and tables hold
	usage     UnitUsage
	broken    error // after which the simulator cannot be used
}

// UnitUsage is what went through one unit.
type UnitUsage struct {
	Unit           string `json:"unit"`
	Sections       int64  `json:"sections"`        // runs of the unit
	RegisterWrites int64  `json:"register_writes"` // of registers and of the entries of tables
	Transfers      int64  `json:"transfers"`       // into the unit
	Cycles         int64  `json:"cycles"`          // from a section's first transfer to its last result
}

// Report says which units computed, and what this machine's processor did beside them.
type Report struct {
	Units    []UnitUsage `json:"units"` // by name
	Cycles   int64       `json:"cycles"`
	Firmware []string    `json:"firmware"`
}

// New returns a simulation without simulators: each is made, or found in the folder, when its unit is first needed. The
// simulators end with ctx. The error wraps cosim.ErrTools where the tools are missing.
func New(ctx context.Context, o Options) (*Simulation, error) {
	if err := cosim.FindTools(); err != nil {
		return nil, err
	}
	return &Simulation{ctx: ctx, options: o, units: make(map[string]*simulatedUnit), firmware: make(map[string]bool)}, nil
}

// run writes a setup, streams transfers through the unit, and returns the results.
func (s *Simulation) run(setup rtl.Setup, words []uint64) ([]uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.simulatorOf(setup.Unit)
	if err != nil {
		return nil, err
	}
	if u.broken != nil {
		return nil, u.broken
	}
	if u.broken = u.load(setup); u.broken != nil {
		return nil, u.broken
	}
	results, cycles, err := u.simulator.Run(cosim.Stream{Words: words})
	if err != nil {
		u.broken = err
		return nil, err
	}
	u.usage.Sections++
	u.usage.Transfers += int64(len(words) / rtl.TransferWords(u.unit.Input))
	u.usage.Cycles += int64(cycles)
	return results, nil
}

// load writes the registers and entries of a setup that hold something else.
func (u *simulatedUnit) load(setup rtl.Setup) error {
	changed := rtl.Setup{Unit: setup.Unit}
	for _, w := range setup.Writes {
		if held, ok := u.loaded[w.Address]; !ok || held != w.Data {
			changed.Writes = append(changed.Writes, w)
			u.loaded[w.Address] = w.Data
		}
	}
	u.usage.RegisterWrites += int64(len(changed.Writes))
	return u.simulator.Configure(changed)
}

// simulatorOf returns a unit whose simulator runs.
func (s *Simulation) simulatorOf(name string) (*simulatedUnit, error) {
	if u, ok := s.units[name]; ok {
		return u, nil
	}
	unit, err := rtl.Named(name)
	if err != nil {
		return nil, err
	}
	program, err := cosim.Find(s.ctx, unit, s.options.Folder)
	if errors.Is(err, cosim.ErrNotBuilt) {
		if s.options.Building != nil {
			s.options.Building(name)
		}
		program, err = cosim.Build(s.ctx, unit, s.options.Folder)
	}
	if err != nil {
		return nil, err
	}
	simulator, err := cosim.Start(s.ctx, unit, program)
	if err != nil {
		return nil, err
	}
	u := &simulatedUnit{unit: unit, simulator: simulator, loaded: make(map[uint16]uint64),
		usage: UnitUsage{Unit: name}}
	s.units[name] = u
	return u, nil
}

// note records what this machine's processor does beside the units.
func (s *Simulation) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.firmware[what] = true
}

// Report returns what went through the units so far.
func (s *Simulation) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	var r Report
	for _, u := range s.units {
		r.Units = append(r.Units, u.usage)
		r.Cycles += u.usage.Cycles
	}
	slices.SortFunc(r.Units, func(a, b UnitUsage) int { return strings.Compare(a.Unit, b.Unit) })
	for what := range s.firmware {
		r.Firmware = append(r.Firmware, what)
	}
	slices.Sort(r.Firmware)
	return r
}

// Close ends the simulators. An end of the context, which ended them already, is no error.
func (s *Simulation) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for name, u := range s.units {
		if err := u.simulator.Close(); err != nil && s.ctx.Err() == nil && u.broken == nil {
			errs = append(errs, fmt.Errorf("end the simulator of unit %s: %w", name, err))
		}
	}
	clear(s.units)
	return errors.Join(errs...)
}
