package rescale

import (
	"errors"
	"fmt"
	"math"
)

// ErrFactors says that a factor is below 1, or that both are above 1.
var ErrFactors = errors.New("rescale: multiplier and divisor must be at least 1, and one of them 1")

// ErrRange says that a value is too large for its new unit.
var ErrRange = errors.New("rescale: value does not fit int64")

// RangeError names a value whose product does not fit int64. It wraps ErrRange.
type RangeError struct {
	Row               int // Row counts from 0 in the column given.
	Value, Multiplier int64
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("rescale: row %d: %d times %d does not fit int64", e.Row, e.Value, e.Multiplier)
}

// Unwrap returns ErrRange.
func (e *RangeError) Unwrap() error { return ErrRange }

// CheckFactors returns ErrFactors unless both factors are at least 1 and one of them is 1.
func CheckFactors(multiplier, divisor int64) error {
	if multiplier < 1 || divisor < 1 || multiplier > 1 && divisor > 1 {
		return fmt.Errorf("%d / %d: %w", multiplier, divisor, ErrFactors)
	}
	return nil
}

// Rescale writes floor(x * multiplier / divisor) for each x of src to dst, which has the same length and may be src.
// valid is nil, or has a byte a value; a value of validity 0 is a null, and its result, any number, is not an error.
func Rescale(dst, src []int64, valid []byte, multiplier, divisor int64) error {
	if err := CheckFactors(multiplier, divisor); err != nil {
		return err
	}
	if multiplier == 1 {
		divideDown(dst[:len(src)], src, divisor)
		return nil
	}
	least, greatest := math.MinInt64/multiplier, math.MaxInt64/multiplier
	for i, x := range src {
		if (x < least || x > greatest) && (valid == nil || valid[i] != 0) {
			return &RangeError{Row: i, Value: x, Multiplier: multiplier}
		}
		dst[i] = x * multiplier
	}
	return nil
}

// divideDown divides with rounding towards minus infinity.
func divideDown(dst, src []int64, divisor int64) {
	for i, x := range src {
		quotient := x / divisor
		dst[i] = quotient + (x-quotient*divisor)>>63 // the remainder has the sign of x
	}
}
