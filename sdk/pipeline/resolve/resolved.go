package resolve

import (
	"fmt"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/tensor"
)

// Resolved is a spec that was applied to the schema of a dataset.
type Resolved struct {
	Name  string
	Batch int // rows of a mini-batch
	IDs   program.IDs
	// DenseType is the type of dense features; float32 if there are none.
	DenseType program.DenseType
	// Source is the format of the partitions. LabelField says that text or binary rows begin with a label.
	Source     program.Source
	LabelField bool
	// Malformed says what becomes of malformed text rows. Resolve sets it to fail; the caller changes it before it
	// calls Canonical and Lower. With program.MalformedNull every column may be null.
	Malformed program.Malformed

	Label *Feature // nil: none
	Dense []Feature
	Keys  []Feature // the sparse features, then the generated ones

	Filter    *FilterPass // nil: every row
	Selection *selection.Selection
	Modules   program.Modules // The modules that steps name and whose bytes are at hand.
}

// Feature is one column of the label or dense tensor, or one key, with the operators that make it.
type Feature struct {
	Name   string
	Column columntypes.Column
	Key    int64 // The key of a map whose keys are numbers.
	// TextKey is the key if the keys of the map are text.
	TextKey string
	Ops     []program.Op // conversions included
	// DropScores says that the scores of a scored list do not become weights.
	DropScores bool
	// Set numbers the keys that are deduplicated together, from 1; 0: the key is not deduplicated.
	Set int
	// NumEmbeddings is, for a key, the size of the embedding table that its ids need: ids are in [0, NumEmbeddings). It
	// is 0 if the operators do not bound the ids.
	NumEmbeddings int64
	IDs           catalogue.Range // The ids that a key can have.

	Step     *Step // what makes the feature, if several columns do; Column then describes the step's value
	Shared   int   // how many of the first Ops belong to a named value
	Absent   bool  // partitions may lack the column
	Place    problem.Place
	group    *pipeline.Group // nil: the feature is the label.
	nulls    nullness
	lookup   *featureLookup   // nil: no vocabulary ends the chain
	encoding *featureEncoding // nil: no target encoding ends the chain
}

// nullness says how nulls pass through a chain of operators.
type nullness struct {
	fills bool // an operator replaces the nulls of the column
	makes bool // a later operator makes new nulls
}

// DenseWidth returns the number of columns of the dense tensor.
func (r *Resolved) DenseWidth() int {
	width := 0
	for i := range r.Dense {
		width += r.Dense[i].Width()
	}
	return width
}

// Schema returns the schema of the tensors that the pipeline makes.
func (r *Resolved) Schema() *tensor.Schema {
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
		if weights && !r.Keys[i].Scored() {
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

// hasScores reports whether the feature's ids have scores.
func (f *Feature) hasScores() bool {
	return f.Column.Map.Scores != "" || f.Step != nil && f.Step.Yields.Scored
}

// Scored reports whether the feature's scores become weights.
func (f *Feature) Scored() bool { return f.hasScores() && !f.DropScores }

// Weights reports whether mini-batches have a weight for every id: the score in a scored list, and 1 for other ids.
func (r *Resolved) Weights() bool {
	for i := range r.Keys {
		if r.Keys[i].Scored() {
			return true
		}
	}
	return false
}

// Null reports whether a row can lack a value at the end of the chain.
func (f *Feature) Null(m program.Malformed) bool {
	o := Operand{Column: f.Column, Step: f.Step, nulls: f.nulls}
	return o.null(m)
}

// jaggedFromDrive reports whether a row of what the drive makes can have no id, or more than one.
func (f *Feature) jaggedFromDrive(m program.Malformed) bool { return f.Column.List || f.Null(m) }

// Fixed reports whether every row has exactly one id of every key.
func (r *Resolved) Fixed() bool {
	for i := range r.Keys {
		if r.Keys[i].jagged(r.Malformed) {
			return false
		}
	}
	return true
}
