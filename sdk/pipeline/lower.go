package pipeline

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/tensor"
)

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
func Lower(r *Resolved) (*program.Program, *tensor.Schema, error) {
	var p problems
	if r.Malformed != program.MalformedFail && r.Source != program.CriteoTSV {
		p.add(location{}, ErrValue, "malformed rows are a matter of text, and the dataset is %v", r.Source)
	}
	for i := range r.Dense {
		r.refuseNulls(&p, &r.Dense[i], "dense")
	}
	if r.Label != nil {
		r.refuseNulls(&p, r.Label, "label")
	}
	if r.Label == nil && len(r.Dense) == 0 && len(r.Keys) == 0 {
		p.add(location{}, ErrEmpty, "")
	}
	r.refuseLookups(&p)
	if err := p.err(); err != nil {
		return nil, nil, err
	}

	fixed := r.Fixed()
	out := &program.Program{
		Source: r.Source, Malformed: r.Malformed, Label: r.LabelField,
		Output: program.Output{
			Label: r.Label != nil, Dense: uint32(r.denseWidth()), DenseType: r.DenseType, Keys: uint32(len(r.Keys)),
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
	out.Modules, out.LookupTables = r.modules, r.lookupTables
	if err := out.Validate(); err != nil {
		return nil, nil, fmt.Errorf("pipeline %q: lower: %w", r.Name, err)
	}
	return out, r.schema(), nil
}

// refuseNulls refuses a feature that may lack a value if its tensor has no place for a null.
func (r *Resolved) refuseNulls(p *problems, f *Feature, what string) {
	if f.null(r.Malformed) {
		why := "the column may be null"
		if f.absent {
			why = "the column may be absent, which makes it null"
		}
		if f.Column.Map.IsMap() {
			why = "a row may lack the key"
		}
		if what == "label" {
			p.add(f.location, ErrNull, "%s and a label has no place for one; write label: {column: %s, null: 0} with "+
				"the value that a row "+
				"without label is to have, or make the column required", why, yamlText(f.Name))
			return
		}
		p.add(f.location, ErrNull, "%s and %s features have no place for one; put fill_null first", why, what)
	}
}

// lowering builds a program's columns.
type lowering struct {
	out   *program.Program
	first map[string]int // by leaf: index of the first column that reads the leaf as a scalar
	// graphs are by the index of the column that stands for a graph until insertGraphs.
	graphs map[int]*graphBuilder
	forms  canonical // numbers the steps of all features
}

// lastColumnIs reports whether the last column reads the leaf c in the way of c and is not a graph.
func (l *lowering) lastColumnIs(c *ColumnInfo) bool {
	n := len(l.out.Columns)
	if n == 0 || l.graphs[n-1] != nil {
		return false
	}
	last := &l.out.Columns[n-1]
	return last.Name == c.Name && last.Reading == c.Reading && (c.Map.IsMap() || last.Kind == c.Kind)
}

// leafKey identifies a leaf: by its name, and by how it is read if its partitions have several types or the type null.
func (c *ColumnInfo) leafKey() string {
	if c.Reading == program.ReadStored && c.Null == 0 {
		return c.Name
	}
	return fmt.Sprintf("%s\x00%v %d", c.Name, c.Kind, c.Reading)
}

// addFeature adds a feature's sink to the column that reads its leaf already, if the feature may share that column, or
// to a new column.
func (l *lowering) addFeature(f *Feature, to program.Dest, index int, share bool) {
	s := program.Sink{To: to, Index: uint32(index), Ops: f.Ops, Refuses: f.refusal(to)}
	numbers := f.step == nil && readAsNumbers(&f.Column, f.Ops)
	if f.step != nil {
		l.addStepFeature(f, s)
		return
	}
	if f.Column.Map.IsMap() {
		l.addMapFeature(f, s)
		return
	}
	i, have := l.first[f.Column.leafKey()]
	if to == program.ToSparse {
		i = len(l.out.Columns) - 1
		have = true
	}
	if share && have && !f.Column.List {
		c := &l.out.Columns[i]
		c.Sinks, c.Absent, c.FitsInt64 = append(c.Sinks, s), c.Absent || f.absent, c.FitsInt64 || numbers
		return
	}
	if _, seen := l.first[f.Column.leafKey()]; !seen && !f.Column.List {
		l.first[f.Column.leafKey()] = len(l.out.Columns)
	}
	l.out.Columns = append(l.out.Columns, program.Column{
		Name: f.Column.Name, Field: f.Column.Field, Kind: f.Column.Kind, List: f.Column.List, Sinks: []program.Sink{s},
		Absent: f.absent, FitsInt64: numbers, Reading: f.Column.Reading,
	})
}

func (r *Resolved) schema() *tensor.Schema {
	s := &tensor.Schema{Label: r.Label != nil, IDs: tensor.Int64, Weights: r.Weights()}
	if r.IDs == program.IDs32 {
		s.IDs = tensor.Int32
	}
	if r.DenseType == program.DenseBFloat16 {
		s.DenseType = tensor.BFloat16
	}
	for i := range r.Dense {
		s.Dense = append(s.Dense, r.Dense[i].columnNames()...)
	}
	for i := range r.Keys {
		f := &r.Keys[i]
		s.Keys = append(s.Keys, tensor.Key{Name: f.Name, NumEmbeddings: f.NumEmbeddings, List: f.jagged(r.Malformed),
			Set: f.Set})
	}
	return s
}

// Notes returns warnings about what is allowed, one line each.
func (r *Resolved) Notes() []string {
	var notes []string
	unscored, weights := 0, r.Weights()
	for i := range r.Keys {
		if weights && !r.Keys[i].scored() {
			unscored++
		}
		if f := &r.Keys[i]; f.NumEmbeddings == 0 {
			notes = append(notes, fmt.Sprintf(
				"key %q: the pipeline does not bound its ids, so the size of its embedding table is unknown; end "+
					"with sigrid_hash, positive_modulus or clamp",
				f.Name))
		}
	}
	if unscored > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d keys have no scores: each of their ids weighs 1", unscored,
			len(r.Keys)))
	}
	return notes
}
