package csd

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/millrace/millrace/fpga/csd/images"
	"github.com/millrace/millrace/fpga/csd/memory"
	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/profile"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/controller/programs"
	"github.com/millrace/millrace/nvme/cs"
)

// Ranges that a program of an image is given, in this order. The last one may be left out: only programs with lookup
// tables need it.
const (
	rangeProgram = iota
	rangeInput
	rangeDict
	rangeScratch
	rangeOutput
	rangeResult
	rangeTables
	rangeCount
)

// BackendFunctional is the backend whose units are the Go kernels.
const BackendFunctional = "functional"

// compute is the FPGA and its DRAM, with which the controller runs namespace 2 and the regions' namespaces.
type compute struct {
	slm     []byte
	slots   *images.Slots
	threads []chan struct{} // by region: a token a running execution
	pacing  []*pacing       // by region; nil: native timing
	stats   counters
	log     *slog.Logger
}

// InputRange implements controller.InputReader: programs only read their input.
func (c *compute) InputRange() int { return rangeInput }

// SLM implements controller.Compute.
func (c *compute) SLM() []byte { return c.slm }

// ClearSLM implements controller.Compute. Its time depends on how much of the bytes was used.
func (c *compute) ClearSLM(b []byte) { memory.ClearUsed(b) }

// Programs implements controller.Compute.
func (c *compute) Programs() programs.Device { return c.slots }

// BackendName implements controller.Compute.
func (c *compute) BackendName() string { return BackendFunctional }

// Execute implements controller.Compute: one slice on one engine thread of its region. Under a modelled timing it ends
// when the model says; the thread is free before that.
func (c *compute) Execute(ctx context.Context, x controller.Execution) (uint64, nvme.Status) {
	v, st, until := c.executeUnpaced(ctx, x)
	if until != nil && c.pacing[x.Region].Wait(ctx, until) != nil {
		return v, nvme.CommandAborted
	}
	return v, st
}

// executeUnpaced is Execute as fast as the host. until is when a modelled drive would end, and nil without one.
func (c *compute) executeUnpaced(ctx context.Context, x controller.Execution) (
	v uint64, st nvme.Status, until *timing.End,
) {
	ranges := x.Ranges
	if len(ranges) != rangeCount && len(ranges) != rangeTables {
		return 0, nvme.InvalidField, until
	}
	came := time.Now()
	threads := c.threads[x.Region]
	select {
	case threads <- struct{}{}:
	case <-ctx.Done():
		return 0, nvme.CommandAborted, until
	}
	defer func() { <-threads }()
	e, active := c.slots.Running(x.Region)
	if e == nil {
		return 0, nvme.ProgramNotActivated, until
	}
	// The engine is written not to panic. Should it, the fault stays in the command: a drive does not take its host down.
	defer func() {
		if r := recover(); r != nil {
			if x.Input != nil && memory.IsFault(r) {
				c.log.Error("read flash that an execution reads in place", "error", r)
				v, st = 0, nvme.UnrecoveredReadError
				return
			}
			c.log.Error("engine fault", "panic", r, "stack", string(debug.Stack()))
			v, st = 0, nvme.InternalError
		}
	}()
	mem := engine.Memory{
		Program: c.bytesOfRange(ranges[rangeProgram]),
		Input:   c.bytesOfRange(ranges[rangeInput]),
		Dict:    c.bytesOfRange(ranges[rangeDict]),
		Scratch: c.bytesOfRange(ranges[rangeScratch]),
		Output:  c.bytesOfRange(ranges[rangeOutput]),
		Result:  c.bytesOfRange(ranges[rangeResult]),
	}
	if len(ranges) == rangeCount {
		mem.Tables = c.bytesOfRange(ranges[rangeTables])
	}
	if x.Input != nil {
		mem.Lent = x.Input
		// The medium may fail under a mapped file. The fault is then a panic of this goroutine, and the command's.
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	}
	start := time.Now()
	var units profile.Profile
	state := e.Measure(ctx, mem, x.Args, &units)
	took := time.Since(start)
	wire.Stamp(mem.Result, uint64(start.Sub(came)), uint64(x.Moved))
	var err error
	var pace func(timing.Work, bool) uint64
	if c.pacing != nil {
		pace = func(w timing.Work, isText bool) (ns uint64) {
			// On the drive's clock, whose own part of a second is not the machine's.
			modelled := timing.Execution{Image: active, Work: w, Text: isText, Host: x.Moved + took,
				Came: c.stats.clock.Before(time.Since(came) + x.Moved)}
			ns, until, err = c.pacing[x.Region].takeExecution(modelled, x.MovedBytes, ranges[rangeResult].Addr, &c.stats.slice,
				&c.stats.result)
			return ns
		}
	}
	c.stats.countExecution(mem, x.Args, state, uint64(took), &units, pace)
	switch {
	case err != nil:
		c.log.Error("timing of an execution", "error", err)
		return 0, nvme.InternalError, nil
	case state == program.Idle && ctx.Err() != nil:
		return uint64(state), nvme.CommandAborted, until
	case state >= program.BadSlice:
		return uint64(state), cs.StatusProgramFault, until
	}
	return uint64(state), nvme.Success, until
}

// bytesOfRange is a range's bytes; the controller has checked that it lies inside.
func (c *compute) bytesOfRange(r cs.Range) []byte { return c.slm[r.Addr : r.Addr+r.Len : r.Addr+r.Len] }

// Log implements controller.Compute.
func (c *compute) Log() []byte {
	l := c.stats.engineLog()
	l.Backend = BackendFunctional
	for _, threads := range c.threads {
		l.Threads += uint16(cap(threads))
	}
	l.SLMBytes = uint64(len(c.slm))
	return l.Marshal()
}
