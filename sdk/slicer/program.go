package slicer

import (
	"crypto/sha256"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/sdk/target"
)

const (
	maxSliceTasks = 1024     // most tasks of a slice
	maxSliceBytes = 64 << 20 // most window bytes of a slice of more than one task: a command takes well under a second
)

// Program is a program made ready for slices: its wire form and the parts of it that every slice repeats.
type Program struct {
	*program.Program
	Image    []byte   // the wire form, which lies in the target's memory from address 0
	MaxTasks int      // most tasks of a slice
	digest   [32]byte // SHA-256 of Image
}

// Prepare makes a program ready for slices on a target. Every key of an output with lengths gets a column of its own.
func Prepare(prog *program.Program, limits target.Limits) (*Program, error) {
	if err := prog.Validate(); err != nil {
		return nil, err
	}
	prog = separateKeys(prog)
	p := &Program{Program: prog, Image: wire.Marshal(prog), MaxTasks: min(maxSliceTasks, 2*len(prog.Columns)+16)}
	p.digest = sha256.Sum256(p.Image)
	if limits.Tasks > 0 {
		p.MaxTasks = min(p.MaxTasks, limits.Tasks)
	}
	if prog.Source != program.Parquet { // one task reads all columns, and so those of a graph together
		p.MaxTasks = 1
		return p, nil
	}
	for i := range prog.Columns {
		if n := prog.Parts(i); n > p.MaxTasks {
			return nil, fmt.Errorf("%s takes %d tasks a slice: column %q is of a map or graph, which wants %d together",
				limits.Engine, p.MaxTasks, prog.Columns[i].Name, n)
		}
	}
	return p, nil
}

// ImageSpan returns where the program lies in the target's memory.
func (p *Program) ImageSpan() target.Span {
	return target.Span{Len: roundUpToGrain(uint64(len(p.Image)))}
}

// TablesSpan returns where the program's lookup tables lie in the target's memory, behind the program.
func (p *Program) TablesSpan() target.Span {
	return target.Span{Addr: p.ImageSpan().End(), Len: p.TablesBytes()}
}

// MemoryBytes returns the bytes of the target's memory that the program and its lookup tables take. Workspaces lie
// behind them.
func (p *Program) MemoryBytes() uint64 {
	return p.TablesSpan().Addr + roundUpToGrain(p.TablesSpan().Len)
}

// separateKeys gives every key of an output with lengths a column of its own. A column that feeds several would have to
// be done in one task, since all values of one key lie behind all of the other's, and a mini-batch may cross row
// groups.
func separateKeys(prog *program.Program) *program.Program {
	if prog.Output.Fixed || prog.Source != program.Parquet {
		return prog
	}
	p := *prog
	p.Columns = nil
	for _, col := range prog.Columns {
		if col.Part != program.NoPart {
			p.Columns = append(p.Columns, col) // the engine puts the features of a map or graph in order itself
			continue
		}
		rest := col
		rest.Sinks = nil
		var apart []program.Column
		keys := 0
		for _, s := range col.Sinks {
			if s.To == program.ToSparse {
				if keys++; keys > 1 {
					one := col
					one.Sinks = []program.Sink{s}
					apart = append(apart, one)
					continue
				}
			}
			rest.Sinks = append(rest.Sinks, s)
		}
		p.Columns = append(append(p.Columns, rest), apart...)
	}
	return &p
}
