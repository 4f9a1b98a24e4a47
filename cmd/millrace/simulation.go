package main

import (
	"context"
	"fmt"
	"io"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/sdk/rtl"
	"github.com/millrace/millrace/trainmgr/local"
)

// simulatedUnits are the simulated units of a command with --engine rtl; nil with every other engine.
type simulatedUnits struct{ simulation *rtl.Simulation }

// simulateUnits has the drives' processors simulate the units, if --engine rtl says so.
func (c *console) simulateUnits(ctx context.Context, config *local.Config) (*simulatedUnits, error) {
	if config.Engine != host.EngineRTL {
		return nil, nil
	}
	simulation, err := rtl.New(ctx, func(unit string) { c.Announce("make the simulator of unit " + unit) })
	if err != nil {
		return nil, fmt.Errorf("--engine rtl: %w", err)
	}
	config.Simulate = simulation.NewProcessor
	return &simulatedUnits{simulation}, nil
}

// report returns what went through the units.
func (u *simulatedUnits) report() *rtl.Report {
	if u == nil {
		return nil
	}
	r := u.simulation.Report()
	return &r
}

// close ends the simulators.
func (u *simulatedUnits) close() error {
	if u == nil {
		return nil
	}
	return u.simulation.Close()
}

// printUnits prints which units computed and what this machine did beside them.
func printUnits(w io.Writer, r *rtl.Report) {
	if r == nil {
		return
	}
	fmt.Fprintf(w, "rtl\t%d cycles, the sum over %d simulated units\n", r.Cycles, len(r.Units))
	for _, u := range r.Units {
		fmt.Fprintf(w, "unit %s\t%d cycles for %d transfers in %d sections, %d writes of registers\n", u.Unit, u.Cycles,
			u.Transfers, u.Sections, u.RegisterWrites)
	}
	for _, what := range r.Firmware {
		fmt.Fprintf(w, "firmware\t%s\n", what)
	}
}
