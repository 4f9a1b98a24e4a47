package program

import (
	"fmt"
	"math"
)

// MaxOneHot is the greatest number of classes of a OneHot.
const MaxOneHot = 4096

// OneHot makes Classes neighbouring dense columns of a scalar, of which the sink's index is the first: 1 for the class
// of the value, and 0 for the others. It is the last operator of a dense sink. The class of an Int64 is its number, and
// what is no class, as a null, has none. With Ranges it takes Float32: the class is the part of the range from Lower to
// Upper, both included, that holds the value, and class 0 if none does; a null has none. Yields Float32.
type OneHot struct {
	Classes      uint32
	Ranges       bool
	Lower, Upper float32 // 0 without Ranges
}

// Unit implements [Op].
func (OneHot) Unit() Unit { return UnitOneHot }

// Out implements [Op].
func (o OneHot) Out(in Kind) Kind {
	if o.Ranges {
		return kindIf(in, Float32, Float32)
	}
	return kindIf(in, Int64, Float32)
}

// check checks the parameters.
func (o OneHot) check(list bool) error {
	step := (o.Upper - o.Lower) / float32(max(o.Classes, 1))
	switch {
	case list:
		return fmt.Errorf("takes one value a row, and not a list")
	case o.Classes < 1 || o.Classes > MaxOneHot:
		return fmt.Errorf("%d classes, want 1 to %d", o.Classes, MaxOneHot)
	case !o.Ranges && math.Float32bits(o.Lower)|math.Float32bits(o.Upper) != 0:
		return fmt.Errorf("bounds %v and %v of ids", o.Lower, o.Upper)
	case o.Ranges && !(isFinite(float64(o.Lower)) && isFinite(float64(step)) && step > 0):
		return fmt.Errorf("a range from %v to %v, want finite numbers that ascend, and classes of some width", o.Lower,
			o.Upper)
	}
	return nil
}
