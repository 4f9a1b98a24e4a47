package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/engine/chain"
	"github.com/millrace/millrace/fpga/engine/chunk"
	"github.com/millrace/millrace/fpga/engine/tensors"
	"github.com/millrace/millrace/fpga/operator/wasm"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
)

// compiledProgram is a program made ready to run: its parameters are checked and its tables built. It is immutable and
// shared by all executors.
type compiledProgram struct {
	source      program.Source
	output      program.Output
	columns     []column
	textOptions text.Options
	usedFields  [textFields]bool // text: the fields that columns read
	fieldCount  int              // text: the number of used fields
	lookups     []lookupTable
	threadBytes uint64 // what operators hold for each thread, beside blocks
}

// textFields is the number of fields of a Criteo row: label, 13 dense, 26 sparse.
const textFields = 1 + text.Dense + text.Sparse

// column is one column and the steps and sinks of its values.
type column struct {
	chunk.Column
	field      uint16
	sparseKeys int // number of sinks that feed keys
	part       program.Part
	group      groupPlan // the plan of the column's map or graph, if it belongs to one
	// passes are the sinks of each pass over the column's rows. There is one pass, unless the column feeds several keys
	// whose values are appended: all values of a key lie behind those of the key before, so each key takes a pass of
	// its own. A task of such a column covers all rows of the mini-batch.
	passes [][]sink
}

// sink is a chain of operators and the tensor it ends in.
type sink struct {
	tensors.Place
	chain chain.Chain
}

// compileProgram prepares a validated program for an engine with these units and modules, unless ctx ends before.
func compileProgram(ctx context.Context, p *program.Program, units []program.UnitRef,
	modules program.Modules) (*compiledProgram, error) {
	for _, want := range p.Units() {
		if !slices.Contains(units, want) && want.Unit == wasm.Unit {
			return nil, fmt.Errorf("compile program: unit %v version %d is not in the image, and module %v needs it: "+
				"activate an image that holds the module", want.Unit, want.Version, p.WasmModules()[0])
		}
		if !slices.Contains(units, want) {
			return nil, fmt.Errorf("compile program: unit %v version %d is not in the image", want.Unit, want.Version)
		}
	}
	c := &compiledProgram{source: p.Source, output: p.Output, columns: make([]column, len(p.Columns))}
	c.textOptions.LabelAbsent = !p.Label
	switch p.Malformed {
	case program.MalformedDrop:
		c.textOptions.Policy = text.Drop
	case program.MalformedNull:
		c.textOptions.Policy = text.Null
	}
	tables := block.NewTables(ctx, modules)
	var err error
	if c.lookups, err = compileLookupTables(p.LookupTables); err != nil {
		return nil, fmt.Errorf("compile program: %w", err)
	}
	graphs := 0
	for i := range p.Columns {
		from, to := &p.Columns[i], &c.columns[i]
		*to = column{field: from.Field, Column: chunk.Column{Name: from.Name, Kind: from.Kind, List: from.List,
			LeafPart: from.LeafPart(), Absent: from.Absent, FitsInt64: from.FitsInt64, Reading: from.Reading}}
		switch to.part = from.Part; {
		case to.part == program.MapKeys:
			to.group = &mapPlan{columnGroup: columnGroup{leaves: p.Parts(i), valuesLeaf: 1}}
		case to.part == program.GraphFirst:
			plan, err := compileGraph(&p.Graphs[graphs], p.Columns[i:][:p.Parts(i)], tables)
			if err != nil {
				return nil, fmt.Errorf("compile program: graph of column %q: %w", from.Name, err)
			}
			to.group = plan
			graphs++
		case to.part != program.NoPart:
			to.group = c.columns[i-1].group
		}
		if p.Source != program.Parquet && !c.usedFields[from.Field] {
			c.usedFields[from.Field] = true
			c.fieldCount++
		}
		sinks := make([]sink, len(from.Sinks))
		for j := range from.Sinks {
			s, err := compileSink(&from.Sinks[j], from.Kind, true, tables)
			if err != nil {
				return nil, fmt.Errorf("compile program: column %q, sink %d: %w", from.Name, j, err)
			}
			sinks[j] = s
			if s.Tensor == program.ToSparse {
				to.sparseKeys++
			}
		}
		switch to.part {
		case program.NoPart:
			to.passes = groupPasses(sinks, p.Output.Fixed)
			to.Rereads = len(to.passes) > 1
		case program.MapValues:
			to.group.(*mapPlan).addSinks(from, sinks, p.Columns[i-1].Kind == program.Bytes)
		}
	}
	c.threadBytes = tables.ThreadBytes
	return c, nil
}

// groupPasses divides sinks into passes; see column.passes.
func groupPasses(sinks []sink, fixed bool) [][]sink {
	passes := [][]sink{nil}
	keys := 0
	for _, s := range sinks {
		at := 0
		if s.Tensor == program.ToSparse {
			if keys > 0 && !fixed {
				passes = append(passes, nil)
				at = len(passes) - 1
			}
			keys++
		}
		passes[at] = append(passes[at], s)
	}
	for _, p := range passes {
		// The last sink may work in the block itself. A sink that would otherwise copy the block should be last.
		slices.SortStableFunc(p, func(a, b sink) int { return a.inPlaceOrder() - b.inPlaceOrder() })
	}
	return passes
}

// inPlaceOrder returns 1 if the chain begins with an operator that works in place, else 0.
func (s sink) inPlaceOrder() int {
	if s.chain.WorksInPlace() {
		return 1
	}
	return 0
}

// compileSink makes the operators of a sink ready for values of some kind. nullsHoldZero reports that the nulls of
// these values hold 0.
func compileSink(s *program.Sink, kind program.Kind, nullsHoldZero bool, tables *block.Tables) (sink, error) {
	c, err := chain.Compile(s.Ops, kind, nullsHoldZero, tables)
	if err != nil {
		return sink{}, err
	}
	to := sink{Place: tensors.Place{Tensor: s.To, Index: s.Index, Refuses: s.Refuses}, chain: c}
	switch last := c.LastStep().(type) {
	case block.ClassNumberer:
		to.Classes = last.Classes()
	case block.RowLengthener:
		to.Length = last.RowLength()
	}
	return to, nil
}
