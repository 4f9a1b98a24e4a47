package clamp

import (
	"errors"
	"fmt"
)

// ErrBounds says that the lower bound is above the upper, or that a bound is NaN.
var ErrBounds = errors.New("clamp: the lower bound is above the upper")

// Int64 clamps every value of v to [lo, hi].
func Int64(v []int64, lo, hi int64) error { return clamp(clampInt64.Pick(), v, lo, hi) }

// Float32 clamps every value of v to [lo, hi]; NaN and -0 pass with their bits.
func Float32(v []float32, lo, hi float32) error { return clamp(clampFloat32.Pick(), v, lo, hi) }

// Float64 clamps every value of v to [lo, hi]; NaN and -0 pass with their bits.
func Float64(v []float64, lo, hi float64) error { return clamp(clampFloat64.Pick(), v, lo, hi) }

func clamp[T int64 | float32 | float64](path func(v []T, lo, hi T), v []T, lo, hi T) error {
	if !(lo <= hi) {
		return fmt.Errorf("clamp to [%v, %v]: %w", lo, hi, ErrBounds)
	}
	path(v, lo, hi)
	return nil
}
