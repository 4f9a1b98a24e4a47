package resolve

import (
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/summary"
	"github.com/millrace/millrace/sdk/targetencoding"
)

// origin is what a document names for a value: columns, which are one column or named value, or inputs.
type origin struct {
	columns, inputs []pipeline.Pattern
	absent          bool // partitions may lack columns of it
}

// statisticsRecorder records what operators take statistics of.
type statisticsRecorder struct {
	name string // The name of the statistics.
	uses []StatisticsUse
}

// StatisticsUse is a value that an operator takes statistics of.
type StatisticsUse struct {
	Value    string // see chain.valueName
	origin   origin
	ops      []pipeline.Op // from the origin to the value, as written
	Kind     program.Kind
	TypeText string
	Nullable bool
	Unsigned bool                    // the value is a uint64
	Folding  *targetencoding.Folding // the statistics are the labels by folds; nil: those of the value alone
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
func (r *resolver) takes(name string, ops []pipeline.Op, from origin) string {
	for i := range ops {
		if ops[i].StatisticsName() == name {
			return ops[i].Name
		}
	}
	for _, pattern := range slices.Concat(from.columns, from.inputs) {
		if v := r.values[pattern.Text]; v != nil {
			inputs := v.spec.Inputs
			if len(inputs) == 0 {
				inputs = []pipeline.Pattern{v.spec.From}
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
		if s.uses[i].Value == value {
			return true
		}
	}
	info := c.from.Column
	info.Kind = c.kind
	if len(c.ops) > 0 {
		info.Logical = ""
	}
	at := *c.from
	at.nulls = c.nulls
	s.uses = append(s.uses, StatisticsUse{Value: value, origin: c.from.origin, ops: c.written, Kind: c.kind,
		TypeText: info.Describe(), Nullable: at.null(program.MalformedNull) || info.Map.IsMap(), Folding: folding,
		Unsigned: c.IsUnsigned()})
	return true
}

// StatisticsUses returns the values that operators take the named statistics of, each once. The error is of type
// [Errors].
func StatisticsUses(s *pipeline.Spec, name string, schema []columntypes.Column) ([]StatisticsUse, error) {
	if _, err := s.BindStatistics(name, &summary.Summary{}, summary.Digest{}); err != nil {
		return nil, err
	}
	recorder := &statisticsRecorder{name: name}
	if _, err := resolveRecorded(s, schema, recorder); err != nil {
		return nil, err
	}
	return recorder.uses, nil
}

// Group returns the group that makes the value and passes it through more operators.
func (u *StatisticsUse) Group(i int, more ...pipeline.Op) pipeline.Group {
	return pipeline.Group{Columns: u.origin.columns, Inputs: u.origin.inputs, As: "statistics_" +
		pipeline.Int(int64(i)).String(),
		Ops: append(u.ops[:len(u.ops):len(u.ops)], more...), AllowAbsent: u.origin.absent}
}
