package statisticspass

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/summary"
)

// OfOperators returns the spec of the pass that makes statistics which the spec names: its mini-batches hold the
// values that operators take them of, of the rows that the spec's filter chooses, and say which rows are null. The
// statistics of a column itself have the column's name; those of what operators make of it have a name that says so and
// ends with digits of a digest. Other statistics that the operators before take numbers from must be bound. The error
// is of type [Errors].
func OfOperators(s *pipeline.Spec, name string, schema []columntypes.Column) (*pipeline.Spec, []Column,
	error) {
	uses, err := resolve.StatisticsUses(s, name, schema)
	if err != nil {
		return nil, nil, err
	}
	pass := &pipeline.Spec{Name: s.Name, Batch: s.Batch, Filter: s.Filter, Selection: s.Selection}
	columns := make([]Column, len(uses))
	var keys, marks []int // the columns, in the order of the keys
	for i := range uses {
		u := &uses[i]
		c := &columns[i]
		*c = Column{Name: u.Value, Type: u.TypeText, Kind: summary.Reals, Dense: -1, Key: -1}
		if c.Folding = u.Folding; c.Folding != nil {
			pass.Label = s.Label
		}
		if u.Kind == program.Int64 {
			c.Kind, c.Unsigned = summary.Integers, u.Unsigned
			pass.Sparse, keys = append(pass.Sparse, u.Group(i)), append(keys, i)
			continue
		}
		if u.Kind == program.Float64 {
			pass.Sparse, keys = append(pass.Sparse, u.Group(i, floatBits())), append(keys, i)
			continue
		}
		c.Dense = len(pass.Dense)
		dense := u.Group(i)
		if u.Nullable {
			dense = u.Group(i, pipeline.FillNull(pipeline.Int(0)))
		}
		dense.KeepNaN = true
		if pass.Dense = append(pass.Dense, dense); !u.Nullable {
			continue
		}
		pass.Generated = append(pass.Generated, u.Group(i,
			pipeline.Bucketize(pipeline.Borders{List: []pipeline.Number{pipeline.Int(0)}})))
		marks = append(marks, i)
	}
	for at, i := range append(keys, marks...) {
		columns[i].Key = at
	}
	pass.TakeNamed(s)
	if _, err := resolve.Pipeline(pass, schema); err != nil {
		return nil, nil, err
	}
	return pass, columns, nil
}
