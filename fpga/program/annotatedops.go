package program

import "fmt"

// The operators of this file read what a Parquet file's annotations stand for: points in time, decimals and FLOAT16.

// Rescale counts an integer in another unit: floor(x * Multiplier / Divisor). Both factors are at least 1, and one of
// them is 1. A product that does not fit int64 fails the slice. Takes and yields Int64.
type Rescale struct{ Multiplier, Divisor int64 }

// Int96Time turns a Parquet INT96 timestamp of 12 bytes into the time since 1970-01-01, rounded towards minus infinity.
// Takes Bytes and yields Int64.
type Int96Time struct{ To TimeUnit }

// TimeUnit is what a time counts.
type TimeUnit uint8

// The units of time. The numbers are part of the wire form.
const (
	TimeSeconds TimeUnit = 0
	TimeDays    TimeUnit = 1
)

// String returns the unit's name.
func (u TimeUnit) String() string {
	switch u {
	case TimeSeconds:
		return "seconds"
	case TimeDays:
		return "days"
	}
	return fmt.Sprintf("unit(%d)", uint8(u))
}

// MaxScale bounds the scale of a Decimal: 32 bytes have 76 digits.
const MaxScale = 76

// Decimal turns an unscaled integer n, an Int64 or the bytes of an integer in two's complement, the highest first, into
// n / 10^Scale, rounded once to Float32 or Float64; or, with a scale of 0, bytes into Int64, which fails the slice if n
// does not fit.
type Decimal struct {
	Scale uint8
	To    Kind
}

// Float16 turns an IEEE binary16 of two little-endian bytes into the Float32 of the same value. It is a conversion: in
// a list it leaves null elements to the operators behind it. Takes Bytes and yields Float32.
type Float16 struct{}

// Unit implements [Op].
func (Rescale) Unit() Unit { return UnitRescale }

// Unit implements [Op].
func (Int96Time) Unit() Unit { return UnitInt96Time }

// Unit implements [Op].
func (Decimal) Unit() Unit { return UnitDecimal }

// Unit implements [Op].
func (Float16) Unit() Unit { return UnitFloat16 }

// Out implements [Op].
func (Rescale) Out(in Kind) Kind { return kindIf(in, Int64, Int64) }

// Out implements [Op].
func (Int96Time) Out(in Kind) Kind { return kindIf(in, Bytes, Int64) }

// Out implements [Op].
func (d Decimal) Out(in Kind) Kind {
	switch d.To {
	case Float32, Float64:
		if in == Int64 || in == Bytes {
			return d.To
		}
	case Int64:
		return kindIf(in, Bytes, Int64)
	}
	return 0
}

// Out implements [Op].
func (Float16) Out(in Kind) Kind { return kindIf(in, Bytes, Float32) }
