package lane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/rtl/cosim"
	"github.com/millrace/millrace/internal/processors"
)

// Options of a simulation.
type Options struct {
	Folder   string            // where simulators are kept
	Building func(unit string) // called before a unit's simulator is made, which takes some seconds; nil: nothing is
}

// Simulation holds the simulators of the units that programs need, and counts what went through each. There are as many
// sets of simulators as this process has processors; the columns of a mini-batch are spread over the sets.
type Simulation struct {
	ctx     context.Context // ends the simulators
	options Options
	tools   *cosim.Tools
	apart   bool // chains go through one unit behind the other, never through unit lane; in tests
	sets    []*unitSet

	mu       sync.Mutex        // held while a simulator is made; guards what follows
	programs map[string]string // They are the paths of the simulators of units that were needed so far.
}

// unitSet holds one simulator of each unit that was needed.
type unitSet struct {
	simulation *Simulation

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
	RegisterWrites int64  `json:"register_writes"` // RegisterWrites count those of registers and of the entries of tables.
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
	tools, err := cosim.FindTools(ctx)
	if err != nil {
		return nil, err
	}
	s := &Simulation{ctx: ctx, options: o, tools: tools, programs: make(map[string]string)}
	for range int(math.Ceil(processors.Available())) {
		s.sets = append(s.sets, &unitSet{simulation: s, units: make(map[string]*simulatedUnit),
			firmware: make(map[string]bool)})
	}
	return s, nil
}

// each calls do for 0 to n - 1, spread over the sets, which work at the same time. A set gets the same numbers whenever
// n is the same, in ascending order and up to the first error. each returns the error of the lowest number.
func (s *Simulation) each(n int, do func(set *unitSet, i int) error) error {
	errs := make([]error, n)
	var working sync.WaitGroup
	for first, set := range s.sets {
		working.Go(func() {
			for i := first; i < n; i += len(s.sets) {
				if errs[i] = do(set, i); errs[i] != nil {
					return
				}
			}
		})
	}
	working.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// run writes a setup, streams transfers through the unit, and returns the results.
func (s *unitSet) run(setup rtl.Setup, words []uint64) ([]uint64, error) {
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
func (s *unitSet) simulatorOf(name string) (*simulatedUnit, error) {
	if u, ok := s.units[name]; ok {
		return u, nil
	}
	unit, err := rtl.Named(name)
	if err != nil {
		return nil, err
	}
	program, err := s.simulation.programOf(unit)
	if err != nil {
		return nil, err
	}
	simulator, err := cosim.Start(s.simulation.ctx, unit, program)
	if err != nil {
		return nil, err
	}
	u := &simulatedUnit{unit: unit, simulator: simulator, loaded: make(map[uint16]uint64),
		usage: UnitUsage{Unit: name}}
	s.units[name] = u
	return u, nil
}

// programOf returns the path of a unit's simulator, which it makes if the folder does not have it.
func (s *Simulation) programOf(unit rtl.Unit) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if program, ok := s.programs[unit.Name]; ok {
		return program, nil
	}
	program, err := s.tools.Find(unit, s.options.Folder)
	if errors.Is(err, cosim.ErrNotBuilt) {
		if s.options.Building != nil {
			s.options.Building(unit.Name)
		}
		program, err = s.tools.Build(s.ctx, unit, s.options.Folder)
	}
	if err != nil {
		return "", err
	}
	s.programs[unit.Name] = program
	return program, nil
}

// note records what this machine's processor does beside the units.
func (s *unitSet) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.firmware[what] = true
}

// Report returns what went through the units so far, in all sets.
func (s *Simulation) Report() Report {
	units, firmware := make(map[string]UnitUsage), make(map[string]bool)
	for _, set := range s.sets {
		set.addTo(units, firmware)
	}
	var r Report
	for _, name := range slices.Sorted(maps.Keys(units)) {
		r.Units = append(r.Units, units[name])
		r.Cycles += units[name].Cycles
	}
	r.Firmware = slices.Sorted(maps.Keys(firmware))
	return r
}

// addTo adds what went through the set's units, and what was done beside them.
func (s *unitSet) addTo(units map[string]UnitUsage, firmware map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, u := range s.units {
		sum := units[name]
		units[name] = UnitUsage{Unit: name, Sections: sum.Sections + u.usage.Sections,
			RegisterWrites: sum.RegisterWrites + u.usage.RegisterWrites, Transfers: sum.Transfers + u.usage.Transfers,
			Cycles: sum.Cycles + u.usage.Cycles}
	}
	maps.Copy(firmware, s.firmware)
}

// Close ends the simulators. An end of the context, which ended them already, is not an error.
func (s *Simulation) Close() error {
	var errs []error
	for _, set := range s.sets {
		errs = append(errs, set.close())
	}
	return errors.Join(errs...)
}

func (s *unitSet) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for name, u := range s.units {
		if err := u.simulator.Close(); err != nil && s.simulation.ctx.Err() == nil && u.broken == nil {
			errs = append(errs, fmt.Errorf("end the simulator of unit %s: %w", name, err))
		}
	}
	clear(s.units)
	return errors.Join(errs...)
}
