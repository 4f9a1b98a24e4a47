package reference

import "math"

// nearestBFloat16 returns, as float32, the bfloat16 nearest to x, ties to even; the NaN 7fc00000h for every NaN. A
// bfloat16 is a float32 whose lower 16 bits are 0.
func nearestBFloat16(x float32) float32 {
	if math.IsNaN(float64(x)) {
		return math.Float32frombits(0x7fc00000)
	}
	if math.IsInf(float64(x), 0) {
		return x
	}
	bits := math.Float32bits(x)
	inner := bits &^ 0xffff
	outer := inner + 0x10000
	// Float64 holds both distances exactly. Behind the largest bfloat16 follows 2^128, in whose place stands infinity.
	value := math.Abs(float64(x))
	below := value - math.Abs(float64(math.Float32frombits(inner)))
	next := math.Abs(float64(math.Float32frombits(outer)))
	if math.IsInf(next, 0) {
		next = math.Ldexp(1, 128)
	}
	above := next - value
	switch {
	case below < above, below == above && inner>>16%2 == 0:
		return math.Float32frombits(inner)
	}
	return math.Float32frombits(outer)
}
