package boxcox

import (
	"errors"
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/unit/logn"
)

// ErrParams says that the parameters define no transform.
var ErrParams = errors.New("box_cox: wrong parameters")

// Mode says which number is transformed.
type Mode uint8

// The modes.
const (
	Caffe2 Mode = iota // max(x + lambda2, 1e-6)
	RAP                // x where it is above 0; other values stay as they are
)

// Params are the parameters of a transform.
type Params struct {
	Lambda1, Lambda2 float32
	Mode             Mode
}

// floor is the least number that caffe2 transforms.
const floor = float32(1e-6)

// Transform is Box's and Cox's transform with certain parameters.
type Transform struct {
	lambda, shift float32
	mode          Mode
	power         power
}

// New returns the transform of parameters, which must be finite.
func New(p Params) (*Transform, error) {
	finite := func(x float32) bool { return x-x == 0 }
	switch {
	case !finite(p.Lambda1) || !finite(p.Lambda2):
		return nil, fmt.Errorf("lambda1 %v, lambda2 %v are not finite: %w", p.Lambda1, p.Lambda2, ErrParams)
	case p.Mode > RAP:
		return nil, fmt.Errorf("mode %d: %w", p.Mode, ErrParams)
	case p.Mode == RAP && p.Lambda2 != 0:
		return nil, fmt.Errorf("lambda2 %v with mode rap, which has none: %w", p.Lambda2, ErrParams)
	}
	return &Transform{lambda: p.Lambda1, shift: p.Lambda2, mode: p.Mode, power: newPower(p.Lambda1)}, nil
}

const (
	// ziv is the margin of Ziv's test, in units of the float64's last place. A float64 and the true value round to the
	// same float32 unless the 29 bits that the rounding drops are within ziv of one half. ziv is 2^-40 of the value,
	// and the fast path is good to 2^-43.
	ziv = 1 << 13

	dropped = 29 // bits of a float64 that a float32 has no room for
	half    = 1 << (dropped - 1)

	leastNormal = 0x1p-126 // below it a float32 has fewer bits
	nan         = 0x7fc00000
)

// Apply sets dst[i] to the transform of src[i] for every i of src. dst must be at least as long as src and may be src.
func (f *Transform) Apply(dst, src []float32) {
	dst = dst[:len(src)]
	lambda := float64(f.lambda)
	for i, x := range src {
		switch {
		case x != x:
			dst[i] = math.Float32frombits(nan)
			continue
		case f.mode == RAP && x <= 0:
			dst[i] = x
			continue
		case f.mode == Caffe2:
			// With an infinite x only the sum can be a NaN, and lambda2 is finite.
			if x += f.shift; x < floor {
				x = floor
			}
		}
		switch {
		case f.lambda == 0:
			one := dst[i : i+1]
			one[0] = x
			logn.LogClamped(one, one, 0, float32(math.Inf(-1)), float32(math.Inf(1)))
			continue
		case x == 1:
			dst[i] = float32(math.Copysign(0, lambda))
			continue
		case x > math.MaxFloat32:
			dst[i] = f.power.limit
			continue
		}
		w := math.Expm1(lambda*math.Log(float64(x))) / lambda
		if size := math.Abs(w); math.Float64bits(w)&(1<<dropped-1)-(half-ziv) <= 2*ziv || !(size < math.MaxFloat32) ||
			size < leastNormal {
			dst[i] = f.power.hard(x)
			continue
		}
		dst[i] = float32(w)
	}
}
