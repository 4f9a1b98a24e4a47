package clamp

import (
	"errors"
	"fmt"
)

// ErrBounds says that the lower bound is above the upper, or that a bound is NaN.
var ErrBounds = errors.New("clamp: the lower bound is above the upper")

// Int64 clamps every value of v to [lo, hi].
func Int64(v []int64, lo, hi int64) error { return kernel(v, lo, hi) }

// Float32 clamps every value of v to [lo, hi]; NaN and -0 pass with their bits.
func Float32(v []float32, lo, hi float32) error { return kernel(v, lo, hi) }

// Float64 clamps every value of v to [lo, hi]; NaN and -0 pass with their bits.
func Float64(v []float64, lo, hi float64) error { return kernel(v, lo, hi) }

func kernel[T int64 | float32 | float64](v []T, lo, hi T) error {
	if !(lo <= hi) {
		return fmt.Errorf("clamp to [%v, %v]: %w", lo, hi, ErrBounds)
	}
	for i, x := range v {
		if x < lo {
			v[i] = lo
		} else if hi < x {
			v[i] = hi
		}
	}
	return nil
}
