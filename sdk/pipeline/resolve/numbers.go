package resolve

import (
	"slices"

	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// Refusal returns which numbers a feature's tensor refuses: those that the feature's chain can yield and that its group
// does not keep. It is not a part of the canonical form, because the mini-batches that a job makes are the same with it
// and without it.
func (f *Feature) Refusal(to program.Dest) program.Refusal {
	if to == program.ToSparse || f.encoding != nil {
		return program.RefusesNothing
	}
	v := program.ValuesBehind(f.Ops, f.Column.Kind, rangeOfColumn(&f.Column).Low)
	switch {
	case to == program.ToLabel && (v.NaN || v.Infinite):
		return program.RefusesNonFinite
	case to == program.ToDense && v.NaN && (f.group == nil || !f.group.KeepNaN):
		return program.RefusesNaN
	}
	return program.RefusesNothing
}

// IsUnsigned reports whether the chain's values are unsigned integers of 64 bits.
func (c *chain) IsUnsigned() bool { return c.from.Step == nil && StaysUnsigned(&c.from.Column, c.ops) }

// StaysUnsigned reports whether the values of a column behind operators are its unsigned integers of 64 bits, or
// constants in place of nulls.
func StaysUnsigned(c *columntypes.Column, ops []program.Op) bool {
	return c.IsUint64() && !slices.ContainsFunc(ops, func(op program.Op) bool {
		fill, ok := op.(fillnull.Op)
		return !ok || fill.Int < 0
	})
}
