package pipeline

import (
	"math"
	"slices"

	"github.com/millrace/millrace/fpga/program"
)

func applyFillNaN(c *chain, o *Op, a location) {
	if !c.requireNumbers(o, a) || c.kind == program.Int64 { // an integer is never a NaN
		return
	}
	c.appendOp(program.FillNaN{Value: c.realNumber(o, c.number(o, "value"), "value", a)})
}

// realValues is what is known of the values at a place of a chain.
type realValues struct {
	nan, infinite bool    // whether a value can be a NaN, or an infinity
	least         float64 // a lower bound of the values
}

// anyOf returns what is known of the values of a kind.
func anyOf(kind program.Kind) realValues {
	return realValues{nan: kind != program.Int64, infinite: kind != program.Int64, least: math.Inf(-1)}
}

// valuesBehind returns what is known of the values behind operators. The first operator takes values of a kind, which
// are at least lowest if they are integers.
func valuesBehind(ops []program.Op, kind program.Kind, lowest int64) realValues {
	v := anyOf(kind)
	if kind == program.Int64 {
		v.least = float64(lowest)
	}
	for _, op := range ops {
		in := kind
		constant := func(integer int64, number float64) float64 {
			if in == program.Int64 {
				return float64(integer)
			}
			return number
		}
		least := math.Inf(-1)
		switch kind = op.Out(in); o := op.(type) {
		case program.Convert:
			v.infinite, least = v.infinite || in == program.Float64, v.least
		case program.FillNull:
			least = min(v.least, constant(o.Int, o.Float))
		case program.FillNaN:
			v.nan, least = false, min(v.least, o.Value)
		case program.Clamp:
			v.infinite = v.infinite && (math.IsInf(o.FloatLo, 0) || math.IsInf(o.FloatHi, 0))
			least = max(v.least, constant(o.IntLo, o.FloatLo))
		case program.Log:
			x := float32(v.least) + o.Add
			v.nan, v.infinite = v.nan || !(x >= 0), v.infinite || !(x > 0)
		case program.MinMax:
			v.nan, v.infinite = v.nan || o.Min == o.Max, true
		case program.Normalize:
			v.infinite = true
		case program.FirstX, program.ListSlice, program.FixedLength:
			least = min(v.least, 0)
		case program.Decimal:
			v.nan, v.infinite = false, true
		case program.OneHot:
			v.nan, v.infinite, least = false, false, 0
		default:
			v = anyOf(kind)
		}
		v.least = least
	}
	return v
}

// refusal returns which numbers a feature's tensor refuses: those that the feature's chain can yield and that its group
// does not keep. It is not a part of the canonical form, because the mini-batches that a job makes are the same with it
// and without it.
func (f *Feature) refusal(to program.Dest) program.Refusal {
	if to == program.ToSparse || f.encoding != nil {
		return program.RefusesNothing
	}
	v := valuesBehind(f.Ops, f.Column.Kind, rangeOfColumn(&f.Column).lo)
	switch {
	case to == program.ToLabel && (v.nan || v.infinite):
		return program.RefusesNonFinite
	case to == program.ToDense && v.nan && (f.group == nil || !f.group.KeepNaN):
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
	for _, op := range ops {
		switch op.(type) {
		case program.FillNull, program.FirstX, program.ListSlice:
		case program.SigridHash, program.HashBucket, program.NGram, program.ZeroExtend, program.Lookup, *program.MapID:
			return false
		default:
			return c.isUint64()
		}
	}
	return false
}

// staysUnsigned reports whether the values of a column behind operators are its unsigned integers of 64 bits, or
// constants in place of nulls.
func staysUnsigned(c *ColumnInfo, ops []program.Op) bool {
	return c.isUint64() && !slices.ContainsFunc(ops, func(op program.Op) bool {
		fill, ok := op.(program.FillNull)
		return !ok || fill.Int < 0
	})
}
