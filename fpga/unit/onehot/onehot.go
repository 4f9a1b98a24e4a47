package onehot

import (
	"errors"
	"fmt"
	"math"
)

// MaxCount is the greatest number of classes.
const MaxCount = 4096

var (
	// ErrCount says that the number of classes is out of range.
	ErrCount = errors.New("onehot: classes must be 1 to 4096")
	// ErrRange says that the bounds of a range are not finite, do not ascend, or leave parts of no width.
	ErrRange = errors.New("onehot: lower and upper must be finite and ascend, and leave classes of some width")
)

// Classes tells the classes of values.
type Classes struct {
	count              int64
	lower, upper, step float32
}

// New returns the classes 0 to count - 1 of ids.
func New(count int64) (Classes, error) {
	if count < 1 || count > MaxCount {
		return Classes{}, fmt.Errorf("%d classes: %w", count, ErrCount)
	}
	return Classes{count: count}, nil
}

// NewRanges returns the classes of numbers from lower to upper.
func NewRanges(count int64, lower, upper float32) (Classes, error) {
	c, err := New(count)
	if err != nil {
		return c, err
	}
	c.lower, c.upper = lower, upper
	width := upper - lower
	c.step = width / float32(count)
	if !(c.step > 0) || math.IsInf(float64(c.step), 0) || math.IsInf(float64(lower), 0) {
		return Classes{}, fmt.Errorf("%v to %v in %d classes: %w", lower, upper, count, ErrRange)
	}
	return c, nil
}

// IDs sets dst[i] to the class of ids[i]. Both have the same length. dst may be ids.
func (c Classes) IDs(dst, ids []int64) {
	for i, id := range ids[:len(dst)] {
		if uint64(id) >= uint64(c.count) {
			id = -1
		}
		dst[i] = id
	}
}

// Ranges sets dst[i] to the class of x[i]. Both have the same length.
func (c Classes) Ranges(dst []int64, x []float32) {
	for i, v := range x[:len(dst)] {
		class := int64(0)
		if v >= c.lower && v <= c.upper { // A NaN fails both comparisons.
			distance := v - c.lower
			// The quotient is Count for upper, and for values that rounding takes there.
			class = min(int64(distance/c.step), c.count-1)
		}
		dst[i] = class
	}
}
