package pipeline

import (
	"slices"

	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/program"
)

// refusal returns which numbers a feature's tensor refuses: those that the feature's chain can yield and that its group
// does not keep. It is not a part of the canonical form, because the mini-batches that a job makes are the same with it
// and without it.
func (f *Feature) refusal(to program.Dest) program.Refusal {
	if to == program.ToSparse || f.encoding != nil {
		return program.RefusesNothing
	}
	v := program.ValuesBehind(f.Ops, f.Column.Kind, rangeOfColumn(&f.Column).lo)
	switch {
	case to == program.ToLabel && (v.NaN || v.Infinite):
		return program.RefusesNonFinite
	case to == program.ToDense && v.NaN && (f.group == nil || !f.group.KeepNaN):
		return program.RefusesNaN
	}
	return program.RefusesNothing
}

// isUint64 reports whether the column holds unsigned integers of 64 bits.
func (c *ColumnInfo) isUint64() bool {
	return c.Kind == program.Int64 && c.Unsigned && (c.Bits == 0 || c.Bits > 63)
}

// readAsNumbers reports whether operators behind a column read a uint64 as a number, which must then be below 2^63.
// Hashes and tables read its 64 bits.
func readAsNumbers(c *ColumnInfo, ops []program.Op) bool {
	return c.isUint64() && program.ReadUnsigned(ops) == program.UnsignedNumber
}

// isUnsigned reports whether the chain's values are unsigned integers of 64 bits.
func (c *chain) isUnsigned() bool { return c.from.step == nil && staysUnsigned(&c.from.column, c.ops) }

// staysUnsigned reports whether the values of a column behind operators are its unsigned integers of 64 bits, or
// constants in place of nulls.
func staysUnsigned(c *ColumnInfo, ops []program.Op) bool {
	return c.isUint64() && !slices.ContainsFunc(ops, func(op program.Op) bool {
		fill, ok := op.(fillnull.Op)
		return !ok || fill.Int < 0
	})
}
