package normalize

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/unit/internal/affine"
)

// ErrConstants says that mean or deviation is out of range.
var ErrConstants = errors.New("normalize: constants out of range")

// Transform is a mean and a deviation.
type Transform struct{ exact affine.Map }

// New returns the transform of a mean and a deviation, at least 0.
func New(mean, deviation float64) (*Transform, error) {
	if !affine.InRange(mean) || !affine.InRange(deviation) || deviation < 0 {
		return nil, fmt.Errorf("mean %v, deviation %v: %w", mean, deviation, ErrConstants)
	}
	if deviation == 0 {
		deviation = 1
	}
	return &Transform{exact: affine.New(mean, deviation, 0)}, nil
}

// Apply sets dst[i] to the normalized src[i] for every i of src. dst must be at least as long as src and may be src.
func (t *Transform) Apply(dst, src []float32) { t.exact.Apply(dst, src) }
