package logn

import "math"

const (
	// tableBits is log2 of the table's entries.
	tableBits = 8

	// tableBegin is the float64 bits of 0.6875: z lies in [0.6875, 1.375), so that the sum of a logarithm and a
	// multiple of ln 2 cancels nowhere near 1.
	tableBegin = 0x3fe6 << 48

	// A float64 rounds to the float32 that the true value rounds to unless the 29 bits that the rounding drops are
	// this near to one half. In units of the last place: 2^-46 of the value, where the fast path is good to 2^-49.
	ziv = 1 << 7

	dropped = 29 // bits of a float64 that a float32 has no room for
	half    = 1 << (dropped - 1)

	nan = 0x7fc00000 // the NaN that arithmetic makes
)

// logGeneric is the path of plain Go, and the oracle of the others.
func logGeneric(dst, src []float32, add, lo, hi float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		if x < lo {
			x = lo
		} else if hi < x {
			x = hi
		}
		y := x + add
		// Positive and finite: the bits of 0, +Inf, NaN and all that is negative wrap around or lie above.
		if math.Float32bits(y)-1 >= 0x7f800000-1 {
			dst[i] = special(y)
			continue
		}
		// y = 2^k z; the float64 has the float32's exponent even where that one is subnormal.
		bits := math.Float64bits(float64(y))
		from := bits - tableBegin
		k := float64(int64(from) >> 52)
		z := math.Float64frombits(bits - from&(0xfff<<52))
		e := &table[from>>(52-tableBits)&(1<<tableBits-1)]

		// z has 24 bits and the reciprocal 29, so that their product and r are exact, and |r| <= 2^-8.
		r := float64(z*e.inverse) - 1

		// ln(1+r) up to the sixth power: what is left out is below 2^-50 of it.
		r2 := r * r
		p := -1./4 + float64(r*(1./5)) - float64(r2*(1./6))
		q := -1./2 + float64(r*(1./3)) + float64(r2*p)
		w := float64(k*ln2) + e.log + (r + float64(r2*q))

		if math.Float64bits(w)&(1<<dropped-1)-(half-ziv) <= 2*ziv {
			w = hard(y)
		}
		dst[i] = float32(w)
	}
}

// special returns the logarithm of a number that is not positive and finite.
func special(y float32) float32 {
	switch {
	case y == 0:
		return float32(math.Inf(-1))
	case y > 0:
		return y
	}
	return math.Float32frombits(nan)
}
