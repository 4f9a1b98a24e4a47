package cast

import (
	"math"

	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	whole, orNull, bits := Op{}, Op{Overflow: Null}, Op{To: Float64Bits}
	unsigned := Op{From: Unsigned}
	return []rowvalue.Answer{
		{Op: whole, Inputs: []any{float32(2.9)}, Want: int64(2)},
		{Op: whole, Inputs: []any{float32(-2.9)}, Want: int64(-2)},
		{Op: whole, Inputs: []any{float32(1 << 63)}, Fails: true},
		{Op: whole, Inputs: []any{nil}, Want: nil},
		{Op: orNull, Inputs: []any{-0x1p63}, Want: int64(math.MinInt64)},
		{Op: orNull, Inputs: []any{0x1p63}, Want: nil},
		{Op: orNull, Inputs: []any{math.NaN()}, Want: nil},
		{Op: bits, Inputs: []any{math.Copysign(0, -1)}, Want: int64(0)},
		{Op: bits, Inputs: []any{1.0}, Want: int64(0x3ff << 52)},
		{Op: bits, Inputs: []any{-math.NaN()}, Want: int64(0x7ff8 << 48)},
		{Op: Op{To: Float32}, Inputs: []any{int64(1<<24 + 3)}, Want: float32(1<<24 + 4)},
		{Op: Op{To: Float32}, Inputs: []any{16777217.0}, Want: float32(1 << 24)},
		{Op: Op{To: Float64}, Inputs: []any{int64(1<<53 + 1)}, Want: float64(1 << 53)},
		{Op: Op{To: Float64}, Inputs: []any{float32(0.1)}, Want: float64(float32(0.1))},
		{Op: unsigned, Inputs: []any{int64(math.MaxInt64)}, Want: int64(math.MaxInt64)},
		{Op: unsigned, Inputs: []any{int64(-1)}, Fails: true},
		{Op: Op{Overflow: Null, From: Unsigned}, Inputs: []any{int64(-1)}, Want: nil},
		{Op: Op{To: Float32, From: Unsigned}, Inputs: []any{int64(-1)}, Want: float32(1 << 64)},
		{Op: Op{To: Float64, From: Unsigned}, Inputs: []any{int64(math.MinInt64)}, Want: float64(1 << 63)},
	}
}
