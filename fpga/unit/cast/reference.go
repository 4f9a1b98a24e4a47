package cast

import (
	"math"
	"math/big"
)

// ReferenceInt64 returns a real number without its fraction; ok is false if it overflows.
func ReferenceInt64(x float64) (n int64, ok bool) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, false
	}
	whole, _ := new(big.Float).SetFloat64(x).Int(nil)
	return whole.Int64(), whole.IsInt64()
}

// ReferenceFloat32 returns the float32 nearest to an unsigned integer, whose bits are given.
func ReferenceFloat32(bits int64) float32 {
	x, _ := new(big.Rat).SetInt(new(big.Int).SetUint64(uint64(bits))).Float32()
	return x
}

// ReferenceFloat64 returns the float64 nearest to an unsigned integer, whose bits are given.
func ReferenceFloat64(bits int64) float64 {
	x, _ := new(big.Rat).SetInt(new(big.Int).SetUint64(uint64(bits))).Float64()
	return x
}

// ReferenceBits returns the bits of a number.
func ReferenceBits(x float64) int64 {
	switch {
	case math.IsNaN(x):
		return 0x7ff<<52 | 1<<51
	case x == 0:
		return 0
	}
	return int64(math.Float64bits(x))
}
