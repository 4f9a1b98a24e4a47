package program

import (
	"math"
	"slices"
)

// Values is what is known of the values at a place of a chain.
type Values struct {
	NaN, Infinite bool    // Whether a value can be a NaN, or an infinity.
	Least         float64 // A lower bound of the values.
}

// anyOf returns what is known of the values of a kind.
func anyOf(kind Kind) Values {
	return Values{NaN: kind != Int64, Infinite: kind != Int64, Least: math.Inf(-1)}
}

// ValuesBehind returns what is known of the values behind operators. The first operator takes values of a kind, which
// are at least lowest if they are integers.
func ValuesBehind(ops []Op, kind Kind, lowest int64) Values {
	v := anyOf(kind)
	if kind == Int64 {
		v.Least = float64(lowest)
	}
	for _, op := range ops {
		in := kind
		kind = op.Out(in)
		if rule, ok := op.(valuesRule); ok {
			v = rule.ValuesOf(in, v)
		} else {
			v = anyOf(kind)
		}
	}
	return v
}

// KeepsUnit reports whether the values behind operators count the same thing as the values before them, as seconds.
func KeepsUnit(ops []Op) bool {
	return !slices.ContainsFunc(ops, func(op Op) bool {
		k, ok := op.(unitKeeper)
		return !ok || !k.KeepsUnit()
	})
}

// UnsignedUse is the way in which an operator reads an unsigned integer of 64 bits.
type UnsignedUse uint8

// The uses.
const (
	UnsignedNumber UnsignedUse = iota // The operator reads an int64, which does not hold 2^63 and more.
	UnsignedPass                      // The operator passes the integer on.
	UnsignedBits                      // The operator reads the 64 bits.
)

// ReadUnsigned returns how a chain reads an unsigned integer of 64 bits. The first operator that does not pass the
// integer on decides that.
func ReadUnsigned(ops []Op) UnsignedUse {
	for _, op := range ops {
		r, ok := op.(unsignedReader)
		if !ok {
			return UnsignedNumber
		}
		if use := r.ReadsUnsigned(); use != UnsignedPass {
			return use
		}
	}
	return UnsignedPass
}

// DenseColumns returns how many neighbouring dense columns a chain makes of a value. made reports whether the last
// operator makes them, so that no operator can follow.
func DenseColumns(ops []Op) (n uint32, made bool) {
	s := Sink{Ops: ops}
	return s.denseColumns(), s.denseEnd() != nil
}
