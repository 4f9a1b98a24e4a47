package pipeline

import (
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/summary"
	"github.com/millrace/millrace/sdk/targetencoding"
)

// origin is what a document names for a value: columns, which are one column or named value, or inputs.
type origin struct {
	columns, inputs []Pattern
	absent          bool // partitions may lack columns of it
}

// statisticsRecorder records what operators take statistics of.
type statisticsRecorder struct {
	name string // of the statistics
	uses []statisticsUse
}

// statisticsUse is a value that an operator takes statistics of.
type statisticsUse struct {
	value    string // see chain.valueName
	origin   origin
	ops      []Op // from the origin to the value, as written
	kind     program.Kind
	typeText string
	nullable bool
	unsigned bool                    // the value is a uint64
	folding  *targetencoding.Folding // the statistics are the labels by folds; nil: those of the value alone
}

// takenBefore returns the name of an operator of the chain so far that takes its numbers from the statistics of a name,
// if these are being recorded, and otherwise "".
func (s *statisticsRecorder) takenBefore(c *chain, name string) string {
	if s == nil || s.name != name {
		return ""
	}
	return c.r.takes(name, c.written, c.from.origin)
}

// takes returns the name of the first operator that takes its numbers from the named statistics. It looks at ops and at
// the operators of the named values that they begin with.
func (r *resolver) takes(name string, ops []Op, from origin) string {
	for i := range ops {
		if ops[i].statisticsName() == name {
			return ops[i].Name
		}
	}
	for _, pattern := range slices.Concat(from.columns, from.inputs) {
		if v := r.values[pattern.Text]; v != nil {
			inputs := v.spec.Inputs
			if len(inputs) == 0 {
				inputs = []Pattern{v.spec.From}
			}
			if found := r.takes(name, v.spec.Ops, origin{inputs: inputs}); found != "" {
				return found
			}
		}
	}
	return ""
}

// record records a use of the recorder's statistics and reports whether the operator goes on with numbers in their
// place. A nil recorder records nothing.
func (s *statisticsRecorder) record(c *chain, name, value string, folding *targetencoding.Folding) bool {
	if s == nil || s.name != name {
		return false
	}
	for i := range s.uses {
		if s.uses[i].value == value {
			return true
		}
	}
	info := c.from.column
	info.Kind = c.kind
	if len(c.ops) > 0 {
		info.Logical = ""
	}
	at := *c.from
	at.nulls = c.nulls
	s.uses = append(s.uses, statisticsUse{value: value, origin: c.from.origin, ops: c.written, kind: c.kind,
		typeText: describeType(&info), nullable: at.null(program.MalformedNull) || info.Map.IsMap(), folding: folding,
		unsigned: c.isUnsigned()})
	return true
}

// StatisticsPass returns the spec of the pass that makes statistics which the spec names: its mini-batches hold the
// values that operators take them of, of the rows that the spec's filter chooses, and say which rows are null. The
// statistics of a column itself have the column's name; those of what operators make of it have a name that says so and
// ends with digits of a digest. Other statistics that the operators before take numbers from must be bound. The error
// is of type [Errors].
func (s *Spec) StatisticsPass(name string, schema []ColumnInfo) (*Spec, []StatisticsColumn, error) {
	if _, err := s.BindStatistics(name, &summary.Summary{}, summary.Digest{}); err != nil {
		return nil, nil, err
	}
	recorder := &statisticsRecorder{name: name}
	if _, err := s.resolve(schema, recorder); err != nil {
		return nil, nil, err
	}
	pass := &Spec{Name: s.Name, Batch: s.Batch, Filter: s.Filter, Selection: s.Selection}
	columns := make([]StatisticsColumn, len(recorder.uses))
	var keys, marks []int // the columns, in the order of the keys
	for i := range recorder.uses {
		u := &recorder.uses[i]
		c := &columns[i]
		*c = StatisticsColumn{Name: u.value, Type: u.typeText, Kind: summary.Reals, Dense: -1, Key: -1}
		if c.Folding = u.folding; c.Folding != nil {
			pass.Label = s.Label
		}
		if u.kind == program.Int64 {
			c.Kind, c.Unsigned = summary.Integers, u.unsigned
			pass.Sparse, keys = append(pass.Sparse, u.group(i)), append(keys, i)
			continue
		}
		if u.kind == program.Float64 {
			pass.Sparse, keys = append(pass.Sparse, u.group(i, floatBits())), append(keys, i)
			continue
		}
		c.Dense = len(pass.Dense)
		dense := u.group(i)
		if u.nullable {
			dense = u.group(i, FillNull(Int(0)))
		}
		dense.KeepNaN = true
		if pass.Dense = append(pass.Dense, dense); !u.nullable {
			continue
		}
		pass.Generated = append(pass.Generated, u.group(i, Bucketize(Borders{List: []Number{Int(0)}})))
		marks = append(marks, i)
	}
	for at, i := range append(keys, marks...) {
		columns[i].Key = at
	}
	pass.takeNamed(s)
	if _, err := pass.Resolve(schema); err != nil {
		return nil, nil, err
	}
	return pass, columns, nil
}

// group returns the group that makes the value and passes it through more operators.
func (u *statisticsUse) group(i int, more ...Op) Group {
	return Group{Columns: u.origin.columns, Inputs: u.origin.inputs, As: "statistics_" + Int(int64(i)).String(),
		Ops: append(u.ops[:len(u.ops):len(u.ops)], more...), AllowAbsent: u.origin.absent}
}
