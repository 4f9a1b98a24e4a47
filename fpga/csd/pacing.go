package csd

import (
	"sync"

	"github.com/millrace/millrace/fpga/engine/profile"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/internal/clock"
)

// pacing makes executions of a region take the time of a modelled drive.
type pacing struct {
	*timing.Pacer
	copied func() uint64 // bytes of flash that Memory Copy commands have moved to the region's memory so far
	reads  flashReads

	mu      sync.Mutex // guards counted
	counted uint64     // The work of executions has these bytes of copied.
}

// driveClock returns the drive's clock, nil for the machine's.
func (o *Options) driveClock() *clock.Clock {
	if o.Timing == nil {
		return nil
	}
	return o.Timing.Clock()
}

// readFlash returns how many bytes of flash Memory Copy commands have moved since the last call.
func (p *pacing) readFlash() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.copied()
	n := now - p.counted
	p.counted = now
	return float64(n)
}

// takeExecution counts an execution that came at a time and took the host some time, of a slice with a result. stream
// is the address of the result block, and moved the bytes that the execution's own command moved. It returns the time
// that the model says.
func (p *pacing) takeExecution(x timing.Execution, moved, stream uint64, s *program.Slice, r *program.Result) (
	ns uint64, end *timing.End, err error,
) {
	x.Work.FlashBytes = p.reads.bytesOfExecution(float64(moved)+p.readFlash(), stream, s, r)
	takes, end, err := p.Take(x)
	return uint64(takes), end, err
}

// workOf returns what an execution did, without what it read of flash. c.mu is held, and c.slice and c.result are the
// execution's.
func (c *counters) workOf(p *programCounter, units *profile.Profile) timing.Work {
	decoder := &units[program.UnitParquet]
	w := timing.Work{
		OutBytes: float64(c.result.BytesOut),
		Decoded:  float64(decoder.Values + decoder.Lengths), DecodedBytes: float64(decoder.Bytes),
		Bucketized: float64(units[bucketize.Unit].Values),
		Hashed:     float64(units[sigridhash.Unit].Values), Logged: float64(units[log.Unit].Values),
	}
	last := len(p.borders)
	for i := range min(len(c.result.Tasks), len(c.slice.Tasks)) {
		column := int(c.slice.Tasks[i].Column)
		// A column of several row groups has several tasks in a row, and loads its borders once.
		if c.result.Tasks[i].Rows > 0 && column != last && column < len(p.borders) {
			w.Borders += float64(p.borders[column])
			last = column
		}
	}
	return w
}

// bordersOf returns the number of bucket borders of each column's operators. Those of a graph belong to its first
// column.
func bordersOf(p *program.Program) []uint64 {
	borders := make([]uint64, len(p.Columns))
	graph := 0
	for i := range p.Columns {
		add := func(ops []program.Op) {
			for _, op := range ops {
				if b, ok := op.(*bucketize.Op); ok {
					borders[i] += uint64(len(b.Borders32) + len(b.Borders64) + len(b.BordersInt))
				}
			}
		}
		for j := range p.Columns[i].Sinks {
			add(p.Columns[i].Sinks[j].Ops)
		}
		if p.Columns[i].Part != program.GraphFirst || graph >= len(p.Graphs) {
			continue
		}
		for j := range p.Graphs[graph].Steps {
			add(p.Graphs[graph].Steps[j].Ops)
		}
		for j := range p.Graphs[graph].Sinks {
			add(p.Graphs[graph].Sinks[j].Sink.Ops)
		}
		graph++
	}
	return borders
}
