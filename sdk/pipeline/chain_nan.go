package pipeline

import (
	"math"
	"slices"

	"github.com/millrace/millrace/fpga/program"
)

func applyFillNaN(c *chain, o *Op, a location) {
	if !c.requireNumbers(o, a) || c.kind == program.Int64 { // integers are no NaN
		return
	}
	c.appendOp(program.FillNaN{Value: c.realNumber(o, c.number(o, "value"), "value", a)})
}

// realValues is what is known of the values at a place of a chain.
type realValues struct {
	nan, infinite bool    // a value can be one
	least         float64 // no value is less
}

// valuesBehind returns what is known of the values behind operators, given the kind of the values before the first of
// them and the least of them, if they are integers.
func valuesBehind(ops []program.Op, kind program.Kind, least int64) realValues {
	v := realValues{nan: kind != program.Int64, infinite: kind != program.Int64, least: math.Inf(-1)}
	if kind == program.Int64 {
		v.least = float64(least)
	}
	for _, op := range ops {
		in := kind
		kind = op.Out(kind)
		least := math.Inf(-1)
		switch o := op.(type) {
		case program.Convert:
			v.infinite = v.infinite || in == program.Float64
			least = v.least
		case program.FillNull:
			if least = min(v.least, o.Float); in == program.Int64 {
				least = min(v.least, float64(o.Int))
			}
		case program.FillNaN:
			v.nan, least = false, min(v.least, o.Value)
		case program.Clamp:
			if least = max(v.least, o.FloatLo); in == program.Int64 {
				least = max(v.least, float64(o.IntLo))
			}
			v.infinite = v.infinite && (math.IsInf(o.FloatLo, 0) || math.IsInf(o.FloatHi, 0))
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
			v.nan, v.infinite = kind != program.Int64, kind != program.Int64
		}
		v.least = least
	}
	return v
}

// refusal returns which numbers a feature's tensor refuses at the end of the feature's chain: those that the chain can
// yield, as far as its document does not say that they are kept. It is no part of the canonical form, because the
// mini-batches that a job makes are the same with it and without it.
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

// readAsNumbers reports whether operators, behind a column, read a uint64 as a number, which an int64 holds below 2^63
// only. Hashes and tables read its 64 bits.
func readAsNumbers(c *ColumnInfo, ops []program.Op) bool {
	if c.Kind != program.Int64 || !c.Unsigned || c.Bits > 0 && c.Bits < 64 { // 0 is the full width, too
		return false
	}
	for _, op := range ops {
		switch op.(type) {
		case program.FillNull, program.FirstX, program.ListSlice:
		case program.SigridHash, program.HashBucket, program.NGram, program.ZeroExtend, program.Lookup, *program.MapID:
			return false
		default:
			return true
		}
	}
	return false
}

// staysUnsigned reports whether the values of a column, behind operators, are unsigned integers of 64 bits as the
// column has them, or constants among them.
func staysUnsigned(c *ColumnInfo, ops []program.Op) bool {
	return readAsNumbers(c, []program.Op{program.Clamp{}}) && !slices.ContainsFunc(ops, func(op program.Op) bool {
		fill, ok := op.(program.FillNull)
		return !ok || fill.Int < 0
	})
}
