package logit

import (
	"errors"
	"fmt"
	"math"
)

// ErrEps says that eps leaves no range to clamp to.
var ErrEps = errors.New("logit: eps must be a number of at most 0.5")

// Range is the range to which values are clamped before the logit is taken.
type Range struct{ Low, High float32 }

// Bounds returns the range of eps: [eps, 1-eps], the second rounded to float32, or everything if eps is below zero.
func Bounds(eps float32) (Range, error) {
	switch {
	case !(eps <= 0.5):
		return Range{}, fmt.Errorf("eps %v: %w", eps, ErrEps)
	case eps < 0:
		return Range{float32(math.Inf(-1)), float32(math.Inf(1))}, nil
	}
	return Range{eps, 1 - eps}, nil
}

const (
	// ziv is the margin of Ziv's test, in units of the float64's last place. A float64 and the true value round to the
	// same float32 unless the 29 bits that the rounding drops are within ziv of one half. ziv is 2^-46 of the value,
	// and the fast path is good to 2^-49.
	ziv = 1 << 7

	dropped = 29 // bits of a float64 that a float32 has no room for
	half    = 1 << (dropped - 1)

	nan = 0x7fc00000 // the NaN that arithmetic makes
)

// Logit sets dst[i] to the logit of src[i] clamped to r, for every i of src. dst must be at least as long as src and
// may be src.
func (r Range) Logit(dst, src []float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		if x < r.Low {
			x = r.Low
		} else if r.High < x {
			x = r.High
		}
		if !(0 < x && x < 1) {
			dst[i] = special(x)
			continue
		}
		// A subnormal float32 is a normal float64. For |d| <= 1/6 the logit is 2 atanh(d), and d is exact.
		t := float64(x)
		w := 0.0
		if d := 2*t - 1; math.Abs(d) <= 1./6 {
			w = math.Log1p(d) - math.Log1p(-d)
		} else {
			w = math.Log(t / (1 - t))
		}
		if math.Float64bits(w)&(1<<dropped-1)-(half-ziv) <= 2*ziv {
			dst[i] = hard(t)
			continue
		}
		dst[i] = float32(w)
	}
}

// special returns the logit of a number that is not between 0 and 1.
func special(x float32) float32 {
	switch x {
	case 0:
		return float32(math.Inf(-1))
	case 1:
		return float32(math.Inf(1))
	}
	return math.Float32frombits(nan)
}
