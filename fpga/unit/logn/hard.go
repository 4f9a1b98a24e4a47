package logn

import "math"

// hard returns a float64 that rounds to the float32 nearest to ln y, y positive and finite. No float32's logarithm
// comes nearer than 2^-58 to where rounding turns, as the sweep in the tests shows, so that the sign of the error of
// pairLog's first half always decides.
func hard(y float32) float64 {
	w := pairLog(y)
	if math.Float64bits(w.hi)&(1<<dropped-1) == half {
		// Half way between two float32 but for the low half: let it be seen.
		return math.Nextafter(w.hi, math.Copysign(math.Inf(1), w.lo))
	}
	return w.hi
}

// pairLog returns ln y to 2^-90 of it, y positive and finite, by the fast path's way in pairs of float64.
func pairLog(y float32) pair {
	bits := math.Float64bits(float64(y))
	from := bits - tableBegin
	k := float64(int64(from) >> 52)
	z := math.Float64frombits(bits - from&(0xfff<<52))
	i := from >> (52 - tableBits) & (1<<tableBits - 1)
	r := float64(z*table[i].inverse) - 1
	return pair{ln2, ln2Low}.times(k).plus(pair{table[i].log, tableLow[i]}).plus(log1p(r))
}

// log1p returns ln(1+r), |r| <= 2^-8, by its series up to the thirteenth power, in Horner's order.
func log1p(r float64) pair {
	const terms = 13
	var sum pair
	for n := terms; n > 0; n-- {
		sum = reciprocal(float64(n)).plus(sum.times(-r))
	}
	return sum.times(r)
}

// pair is the unevaluated sum of two float64, the second at most half a unit in the last place of the first. The
// algorithms are Dekker's and Knuth's.
type pair struct{ hi, lo float64 }

// reciprocal returns 1/n.
func reciprocal(n float64) pair {
	hi := 1 / n
	return pair{hi, math.FMA(-hi, n, 1) / n}
}

func (a pair) times(b float64) pair {
	hi := float64(a.hi * b) // rounded here: quickSum's sum, inlined, would be fused with it on arm64
	lo := math.FMA(a.hi, b, -hi) + float64(a.lo*b)
	return quickSum(hi, lo)
}

func (a pair) plus(b pair) pair {
	hi, err := twoSum(a.hi, b.hi)
	lo, err2 := twoSum(a.lo, b.lo)
	hi, err = parts(quickSum(hi, err+lo))
	return quickSum(hi, err+err2)
}

func parts(a pair) (hi, lo float64) { return a.hi, a.lo }

// twoSum returns a+b, rounded, and the rounding error.
func twoSum(a, b float64) (sum, err float64) {
	sum = a + b
	t := sum - a
	return sum, (a - (sum - t)) + (b - t)
}

// quickSum is twoSum where a is not below b in magnitude.
func quickSum(a, b float64) pair {
	sum := a + b
	return pair{sum, b - (sum - a)}
}
