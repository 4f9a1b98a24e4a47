package csd

import (
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/profile"
	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/internal/clock"
	"github.com/millrace/millrace/nvme/cs"
)

// maxPrograms bounds the number of programs with counters of their own; the program that ran longest ago makes room.
const maxPrograms = 64

// TransformName is the counter of the operators' time together, an execution a run: the runs of each operator, which
// are blocks of values, and the writing of tensors behind them.
const TransformName = "transform"

// counters count the engine's work since power on.
type counters struct {
	clock *clock.Clock
	start time.Time

	mu         sync.Mutex // guards what follows
	result     program.Result
	slice      program.Slice
	units      [len(profile.Profile{})]cs.UnitCounter // by number; names are filled in by log
	transform  cs.UnitCounter
	programs   map[[32]byte]*programCounter
	executions uint64
	rows       uint64
}

// programCounter holds one program's counters and its properties.
type programCounter struct {
	cs.ProgramCounter
	columns uint64   // 1 for text sources
	borders []uint64 // They count the borders of buckets, by column.
	text    bool
	cells   uint64 // rows times columns put out
	last    uint64
}

// newCounters returns counters that begin now. clock is nil for the machine's time.
func newCounters(clock *clock.Clock) counters {
	return counters{
		clock:    clock,
		start:    clock.Now(),
		programs: make(map[[32]byte]*programCounter),
	}
}

// countExecution counts an execution of ns nanoseconds and the work of its units. Where pace is given, it gets the work
// that the execution did, and returns the nanoseconds that count instead.
func (c *counters) countExecution(mem engine.Memory, args []byte, state program.State, ns uint64,
	units *profile.Profile, pace func(w timing.Work, isText bool) uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.executions++
	for i := range units {
		addUnitTime(&c.units[i], &units[i])
	}
	if state == program.BadSlice || wire.DecodeResult(&c.result, mem.Result) != nil ||
		wire.DecodeSlice(&c.slice, args) != nil {
		return
	}
	p := c.programCounterOf(mem.Program)
	if p == nil {
		return
	}
	var cells uint64
	for _, t := range c.result.Tasks {
		cells += uint64(t.Rows)
	}
	if pace != nil {
		ns = pace(c.workOf(p, units), p.text)
	}
	p.last = c.executions
	p.Timing.Add(ns)
	before := p.cells / p.columns
	p.cells += cells
	// A slice may be some of the columns of its rows: rows count when all columns are through.
	rows := p.cells/p.columns - before
	p.Rows += rows
	c.rows += rows
	if p.Total > 0 {
		p.P = float64(p.Rows) * 1e9 / float64(p.Total)
	}
	c.transform.Timing.Add(c.result.Transform)
	c.transform.Rows += cells
}

// addUnitTime adds a unit's work in one execution to its counter.
func addUnitTime(k *cs.UnitCounter, u *profile.UnitTime) {
	if u.Runs == 0 {
		return
	}
	if k.Runs == 0 || u.Shortest < k.Shortest {
		k.Shortest = u.Shortest
	}
	k.Longest = max(k.Longest, u.Longest)
	k.Runs += u.Runs
	k.Total += u.Total
	k.Rows += u.Values
}

// programCounterOf finds the counters of the program that the slice names, or makes them. c.mu is held.
func (c *counters) programCounterOf(b []byte) *programCounter {
	if p := c.programs[c.slice.Digest]; p != nil {
		return p
	}
	if c.slice.Program > uint64(len(b)) {
		return nil
	}
	prog, err := operator.Unmarshal(b[:c.slice.Program])
	if err != nil {
		return nil
	}
	p := &programCounter{columns: max(1, uint64(len(prog.Columns)))}
	p.borders = bordersOf(prog)
	if p.text = prog.Source != program.Parquet; p.text {
		p.columns = 1
	}
	p.ID = c.slice.Digest
	if len(c.programs) == maxPrograms {
		c.forgetOldest()
	}
	c.programs[c.slice.Digest] = p
	return p
}

func (c *counters) forgetOldest() {
	var oldest *programCounter
	for _, p := range c.programs {
		if oldest == nil || p.last < oldest.last {
			oldest = p
		}
	}
	delete(c.programs, oldest.ID)
}

// engineLog is the vendor log's part that the engine knows: units by number, programs by age, the latest first.
func (c *counters) engineLog() *cs.Log {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &cs.Log{Uptime: uint64(c.clock.Now().Sub(c.start)), Rows: c.rows, Executions: c.executions}
	for _, ref := range program.Known() {
		k := c.units[ref.Unit]
		k.Name, k.Version = ref.Unit.String(), uint32(ref.Version)
		l.Units = append(l.Units, k)
	}
	t := c.transform
	t.Name = TransformName
	l.Units = append(l.Units, t)
	all := make([]*programCounter, 0, len(c.programs))
	for _, p := range c.programs {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *programCounter) int { return int(b.last) - int(a.last) })
	for _, p := range all {
		l.Programs = append(l.Programs, p.ProgramCounter)
	}
	return l
}
