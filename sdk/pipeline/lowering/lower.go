package lowering

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/tensor"
)

// readAsNumbers reports whether operators behind a column read a uint64 as a number, which must then be below 2^63.
// Hashes and tables read its 64 bits.
func readAsNumbers(c *columntypes.Column, ops []program.Op) bool {
	return c.IsUint64() && program.ReadUnsigned(ops) == program.UnsignedNumber
}

// Lower turns a resolved pipeline into the program that a drive runs and the schema of the mini-batches that it makes.
// It refuses a pipeline with vocabularies or a filter, which [LowerWithLookups] takes.
// The error is of type [Errors], or wraps program.ErrInvalid if the pipeline exceeds a limit of programs.
//
// The columns of features that several columns make become graphs. A graph makes the features that share a step, if
// their keys are neighbours in the key order.
//
// A map becomes two or three columns, which make all its dense features and those of its keys that are neighbours in
// the key order. Keys of the map that are not neighbours need another walk over the map.
//
// Columns come in key order, each with the dense columns and the label that read the same leaf; then the leaves that
// feed only dense columns and the label, in that order. A leaf that feeds several keys is read once for consecutive
// keys if lengths are fixed, because the position of every value is then known, and otherwise once for each key.
func Lower(r *resolve.Resolved) (*program.Program, *tensor.Schema, error) { return lowerWith(r, nil) }

// lowerWith lowers a pipeline whose operators look ids up in tables.
func lowerWith(r *resolve.Resolved, tables []program.LookupTable) (*program.Program, *tensor.Schema, error) {
	var p problem.List
	if r.Malformed != program.MalformedFail && r.Source != program.CriteoTSV {
		p.Add(problem.Place{}, problem.ErrValue, "malformed rows are a matter of text, and the dataset is %v", r.Source)
	}
	for i := range r.Dense {
		refuseNulls(r, &p, &r.Dense[i], "dense")
	}
	if r.Label != nil {
		refuseNulls(r, &p, r.Label, "label")
	}
	if r.Label == nil && len(r.Dense) == 0 && len(r.Keys) == 0 {
		p.Add(problem.Place{}, problem.ErrEmpty, "")
	}
	r.RefuseLookups(&p)
	if err := p.Err(); err != nil {
		return nil, nil, err
	}

	fixed := r.Fixed()
	out := &program.Program{
		Source: r.Source, Malformed: r.Malformed, Label: r.LabelField,
		Output: program.Output{
			Label: r.Label != nil, Dense: uint32(r.DenseWidth()), DenseType: r.DenseType, Keys: uint32(len(r.Keys)),
			IDs: r.IDs, Fixed: fixed, Weights: r.Weights(),
		},
	}
	l := lowering{out: out, first: make(map[string]int), graphs: make(map[int]*graphBuilder)}
	for i := range r.Keys {
		f := &r.Keys[i]
		share := fixed && l.lastColumnIs(&f.Column)
		l.addFeature(f, program.ToSparse, i, share)
	}
	column := 0
	for i := range r.Dense {
		l.addFeature(&r.Dense[i], program.ToDense, column, true)
		column += r.Dense[i].Width()
	}
	if r.Label != nil {
		l.addFeature(r.Label, program.ToLabel, 0, true)
	}
	l.insertGraphs()
	out.Modules, out.LookupTables = r.Modules, tables
	if err := out.Validate(); err != nil {
		return nil, nil, fmt.Errorf("pipeline %q: lower: %w", r.Name, err)
	}
	return out, r.Schema(), nil
}

// refuseNulls refuses a feature that may lack a value if its tensor has no place for a null.
func refuseNulls(r *resolve.Resolved, p *problem.List, f *resolve.Feature, what string) {
	if f.Null(r.Malformed) {
		why := "the column may be null"
		if f.Absent {
			why = "the column may be absent, which makes it null"
		}
		if f.Column.Map.IsMap() {
			why = "a row may lack the key"
		}
		if what == "label" {
			p.Add(f.Place, problem.ErrNull, "%s and a label has no place for one; write label: {column: %s, null: 0} with "+
				"the value that a row "+
				"without label is to have, or make the column required", why, pipeline.QuoteYAML(f.Name))
			return
		}
		p.Add(f.Place, problem.ErrNull, "%s and %s features have no place for one; put fill_null first", why, what)
	}
}

// lowering builds a program's columns.
type lowering struct {
	out   *program.Program
	first map[string]int // by leaf: index of the first column that reads the leaf as a scalar
	// graphs are by the index of the column that stands for a graph until insertGraphs.
	graphs map[int]*graphBuilder
	forms  resolve.Forms // The steps of all features.
}

// lastColumnIs reports whether the last column reads the leaf c in the way of c and is not a graph.
func (l *lowering) lastColumnIs(c *columntypes.Column) bool {
	n := len(l.out.Columns)
	if n == 0 || l.graphs[n-1] != nil {
		return false
	}
	last := &l.out.Columns[n-1]
	return last.Name == c.Name && last.Reading == c.Reading && (c.Map.IsMap() || last.Kind == c.Kind)
}

// leafKey identifies a leaf: by its name, and by how it is read if its partitions have several types or the type null.
func leafKey(c *columntypes.Column) string {
	if c.Reading == program.ReadStored && c.Null == 0 {
		return c.Name
	}
	return fmt.Sprintf("%s\x00%v %d", c.Name, c.Kind, c.Reading)
}

// addFeature adds a feature's sink to the column that reads its leaf already, if the feature may share that column, or
// to a new column.
func (l *lowering) addFeature(f *resolve.Feature, to program.Dest, index int, share bool) {
	s := program.Sink{To: to, Index: uint32(index), Ops: f.Ops, Refuses: f.Refusal(to)}
	numbers := f.Step == nil && readAsNumbers(&f.Column, f.Ops)
	if f.Step != nil {
		l.addStepFeature(f, s)
		return
	}
	if f.Column.Map.IsMap() {
		l.addMapFeature(f, s)
		return
	}
	i, have := l.first[leafKey(&f.Column)]
	if to == program.ToSparse {
		i = len(l.out.Columns) - 1
		have = true
	}
	if share && have && !f.Column.List {
		c := &l.out.Columns[i]
		c.Sinks, c.Absent, c.FitsInt64 = append(c.Sinks, s), c.Absent || f.Absent, c.FitsInt64 || numbers
		return
	}
	if _, seen := l.first[leafKey(&f.Column)]; !seen && !f.Column.List {
		l.first[leafKey(&f.Column)] = len(l.out.Columns)
	}
	l.out.Columns = append(l.out.Columns, program.Column{
		Name: f.Column.Name, Field: f.Column.Field, Kind: f.Column.Kind, List: f.Column.List, Sinks: []program.Sink{s},
		Absent: f.Absent, FitsInt64: numbers, Reading: f.Column.Reading,
	})
}
