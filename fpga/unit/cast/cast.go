package cast

import (
	"errors"
	"fmt"
	"math"
)

// ErrOverflow says that a number is not an int64 once its fraction is dropped.
var ErrOverflow = errors.New("not within int64: write overflow: as_null, or bound it with clamp or fill_nan before")

// OverflowError names a number that overflows. It wraps ErrOverflow.
type OverflowError struct {
	Row   int    // The row of the column, from 0.
	Value string // The number in decimal.
}

// Error implements error.
func (e *OverflowError) Error() string {
	return fmt.Sprintf("cast: row %d: %s: %v", e.Row, e.Value, ErrOverflow)
}

// Unwrap returns ErrOverflow.
func (e *OverflowError) Unwrap() error { return ErrOverflow }

// Float is the type of real numbers.
type Float interface{ float32 | float64 }

// The real numbers from least on and below beyond become int64. Both are numbers of float32, too.
const (
	least  = -1 << 63
	beyond = 1 << 63
)

// FloatToInt64 sets each dst[i] to src[i] without its fraction. valid is nil, or has a byte a value, 0 for a null,
// which is never an error. On an error dst is undefined.
func FloatToInt64[F Float](dst []int64, src []F, valid []byte) error {
	dst = dst[:len(src)]
	for i, x := range src {
		if !(x >= least && x < beyond) {
			if valid == nil || valid[i] != 0 {
				return &OverflowError{Row: i, Value: fmt.Sprint(x)}
			}
			x = 0
		}
		dst[i] = int64(x)
	}
	return nil
}

// FloatToInt64OrNull is FloatToInt64 without an error: the byte of valid of a number that overflows becomes 0, and its
// dst 0. valid has a byte a value.
func FloatToInt64OrNull[F Float](dst []int64, src []F, valid []byte) {
	dst, valid = dst[:len(src)], valid[:len(src)]
	for i, x := range src {
		if !(x >= least && x < beyond) {
			x, valid[i] = 0, 0
		}
		dst[i] = int64(x)
	}
}

// CheckUint64 returns an error if an unsigned integer, whose bits are given, is not an int64. valid is that of
// FloatToInt64.
func CheckUint64(src []int64, valid []byte) error {
	for i, x := range src {
		if x < 0 && (valid == nil || valid[i] != 0) {
			return &OverflowError{Row: i, Value: fmt.Sprint(uint64(x))}
		}
	}
	return nil
}

// NullUint64 sets the byte of valid to 0 where an unsigned integer, whose bits are given, is not an int64.
func NullUint64(src []int64, valid []byte) {
	valid = valid[:len(src)]
	for i, x := range src {
		if x < 0 {
			valid[i] = 0
		}
	}
}

// Uint64ToFloat sets each dst[i] to the number nearest to an unsigned integer, whose bits are src[i].
func Uint64ToFloat[F Float](dst []F, src []int64) {
	dst = dst[:len(src)]
	for i, x := range src {
		if x >= 0 {
			dst[i] = F(x)
			continue
		}
		// Half of the integer, with its last bit kept in the next one, rounds as the integer does: both floats have fewer
		// than 62 bits.
		dst[i] = 2 * F(int64(uint64(x)>>1|uint64(x)&1))
	}
}

// notANumber are the bits of every NaN.
const notANumber = 0x7ff8000000000000

// Float64Bits sets each dst[i] to the bits of src[i].
func Float64Bits(dst []int64, src []float64) {
	dst = dst[:len(src)]
	for i, x := range src {
		bits := int64(math.Float64bits(x + 0)) // -0 + 0 is 0
		if x != x {
			bits = notANumber
		}
		dst[i] = bits
	}
}
