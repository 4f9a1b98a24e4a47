package csd

import (
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/nvme/cs"
)

// maxPrograms bounds how many programs the drive counts apart; the one that ran longest ago makes room.
const maxPrograms = 64

// TransformName is the counter of the operators' time. The engine fuses a column's operators into one pass, so their
// time is known together only; each operator's own entry counts executions and values.
const TransformName = "transform"

// counters are what the engine did since power on.
type counters struct {
	start time.Time

	mu         sync.Mutex // guards what follows
	result     program.Result
	slice      program.Slice
	units      map[program.Unit]*cs.UnitCounter
	transform  cs.UnitCounter
	programs   map[[32]byte]*programCounter
	clock      uint64 // executions, for the age of a program
	executions uint64
	rows       uint64
}

// programCounter is one program's counters and what is known of it.
type programCounter struct {
	cs.ProgramCounter
	columns uint64 // 1 for text sources
	source  program.Unit
	ops     map[program.Unit]uint64 // how often an operator occurs
	cells   uint64                  // rows times columns put out
	last    uint64
}

func newCounters() counters {
	return counters{
		start:    time.Now(),
		units:    make(map[program.Unit]*cs.UnitCounter),
		programs: make(map[[32]byte]*programCounter),
	}
}

// ran counts an execution of ns nanoseconds.
func (c *counters) ran(mem engine.Memory, args []byte, state program.State, ns uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.executions++
	if state == program.BadSlice || c.result.DecodeFrom(mem.Result) != nil || c.slice.DecodeFrom(args) != nil {
		return
	}
	p := c.program(mem.Program)
	if p == nil {
		return
	}
	var cells uint64
	for _, t := range c.result.Tasks {
		cells += uint64(t.Rows)
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
	c.unit(p.source).Timing.Add(c.result.Decode)
	c.unit(p.source).Rows += cells
	c.transform.Timing.Add(c.result.Transform)
	c.transform.Rows += cells
	for u, n := range p.ops {
		k := c.unit(u)
		k.Runs++
		k.Rows += n * cells / p.columns
	}
}

// program finds the counters of the program that the slice names, or makes them. c.mu is held.
func (c *counters) program(b []byte) *programCounter {
	if p := c.programs[c.slice.Digest]; p != nil {
		return p
	}
	if c.slice.Program > uint64(len(b)) {
		return nil
	}
	prog, err := program.Unmarshal(b[:c.slice.Program])
	if err != nil {
		return nil
	}
	p := &programCounter{columns: max(1, uint64(len(prog.Columns))), source: program.UnitParquet, ops: make(map[program.Unit]uint64)}
	if prog.Source != program.Parquet {
		p.columns, p.source = 1, program.UnitText
	}
	for i := range prog.Columns {
		for _, s := range prog.Columns[i].Sinks {
			for _, op := range s.Ops {
				p.ops[op.Unit()]++
			}
		}
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

func (c *counters) unit(u program.Unit) *cs.UnitCounter {
	k := c.units[u]
	if k == nil {
		k = &cs.UnitCounter{Name: u.String(), Version: uint32(u.Version())}
		c.units[u] = k
	}
	return k
}

// log is the vendor log's part that the engine knows: units by number, programs by age, the latest first.
func (c *counters) log() *cs.Log {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &cs.Log{Uptime: uint64(time.Since(c.start)), Rows: c.rows, Executions: c.executions}
	for _, ref := range program.Known() {
		if k := c.units[ref.Unit]; k != nil {
			l.Units = append(l.Units, *k)
		} else {
			l.Units = append(l.Units, cs.UnitCounter{Name: ref.Unit.String(), Version: uint32(ref.Version)})
		}
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
