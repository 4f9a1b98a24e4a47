package minmax

import (
	"errors"
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/unit/internal/affine"
)

// ErrBounds says that the bounds are out of range or descend.
var ErrBounds = errors.New("min_max: bounds out of range")

// Transform is two bounds.
type Transform struct {
	exact affine.Map
	point bool // the bounds are one number
}

// New returns the transform of bounds, the second not below the first.
func New(low, high float64) (*Transform, error) {
	if !affine.InRange(low) || !affine.InRange(high) || high < low {
		return nil, fmt.Errorf("from %v to %v: %w", low, high, ErrBounds)
	}
	if low == high {
		return &Transform{point: true}, nil
	}
	return &Transform{exact: affine.New(low, high, low)}, nil
}

// Apply sets dst[i] to where src[i] lies between the bounds, for every i of src. dst must be at least as long as src
// and may be src.
func (t *Transform) Apply(dst, src []float32) {
	if !t.point {
		t.exact.Apply(dst, src)
		return
	}
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = 0.5
		if x == 0 || x-x != 0 { // infinities and NaN have no difference to themselves
			dst[i] = math.Float32frombits(0x7fc00000)
		}
	}
}
