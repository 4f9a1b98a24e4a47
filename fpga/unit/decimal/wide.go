package decimal

import (
	"math"
	"math/bits"
)

// wide is an integer of 256 bits in two's complement, the lowest word first.
type wide [4]uint64

// wideOf reads 1 to 32 bytes in two's complement, the highest first.
func wideOf(value []byte) wide {
	var w wide
	sign := uint64(int64(int8(value[0])) >> 63)
	for i := range w {
		w[i] = sign
	}
	for i, b := range value {
		at := len(value) - 1 - i
		shift := uint(at % 8 * 8)
		w[at/8] = w[at/8]&^(0xff<<shift) | uint64(b)<<shift
	}
	return w
}

// int64 returns the integer, and false if it does not fit int64.
func (w wide) int64() (int64, bool) {
	sign := uint64(int64(w[0]) >> 63)
	return int64(w[0]), w[1] == sign && w[2] == sign && w[3] == sign
}

// magnitude returns the integer without its sign, and whether it is negative. The magnitude is unsigned, since that of
// the least integer has 256 bits.
func (w wide) magnitude() (wide, bool) {
	if int64(w[3]) >= 0 {
		return w, false
	}
	var carry uint64 = 1
	for i := range w {
		w[i], carry = bits.Add64(^w[i], 0, carry)
	}
	return w, true
}

// quotientWords is the number of words in which a magnitude is divided: 256 bits, and 128 for the bits of a quotient.
const quotientWords = 6

// divide returns the magnitude / 10^scale as a mantissa of 64 bits, the highest of which is set, times a power of two.
// The lowest bit of the mantissa is set if the quotient has any bit below it, so that a rounding to fewer bits knows of
// them. The magnitude must not be 0.
func (w wide) divide(scale uint8) (mantissa uint64, exponent int) {
	var quotient [quotientWords]uint64
	copy(quotient[quotientWords-len(w):], w[:])
	shift := shiftToTop(&quotient)
	exponent = -64*(quotientWords-len(w)) - shift
	var remainders uint64
	for left := int(scale); left > 0; left -= maxPower {
		remainders |= divideBy(&quotient, powersOfTen[min(left, maxPower)])
	}
	exponent -= shiftToTop(&quotient)
	for _, word := range quotient[:quotientWords-1] {
		remainders |= word
	}
	mantissa = quotient[quotientWords-1]
	if remainders != 0 {
		mantissa |= 1
	}
	return mantissa, exponent + 64*(quotientWords-1)
}

// shiftToTop shifts words up until the highest bit is set, and returns by how many bits. The words must not all be 0.
func shiftToTop(words *[quotientWords]uint64) int {
	shifted := 0
	for words[quotientWords-1] == 0 {
		copy(words[1:], words[:quotientWords-1])
		words[0] = 0
		shifted += 64
	}
	up := bits.LeadingZeros64(words[quotientWords-1])
	for i := quotientWords - 1; i > 0; i-- {
		words[i] = words[i]<<up | words[i-1]>>(64-up)
	}
	words[0] <<= up
	return shifted + up
}

// divideBy divides words, and returns the remainder.
func divideBy(words *[quotientWords]uint64, divisor uint64) (remainder uint64) {
	for i := quotientWords - 1; i >= 0; i-- {
		words[i], remainder = bits.Div64(remainder, words[i], divisor)
	}
	return remainder
}

// float64 returns the float64 nearest to the integer / 10^scale.
func (w wide) float64(scale uint8) float64 {
	magnitude, negative := w.magnitude()
	if magnitude == (wide{}) {
		return 0
	}
	mantissa, exponent := magnitude.divide(scale)
	// The quotient is above 10^-77 and at most 2^255: neither denormal nor infinite.
	x := math.Ldexp(float64(halved(mantissa)), exponent+1)
	if negative {
		return -x
	}
	return x
}

// float32 returns the float32 nearest to the integer / 10^scale.
func (w wide) float32(scale uint8) float32 {
	magnitude, negative := w.magnitude()
	if magnitude == (wide{}) {
		return 0
	}
	mantissa, exponent := magnitude.divide(scale)
	var x float32
	if exponent+63 >= -126 {
		// Rounded to 24 bits; what is beyond the largest float32 then becomes infinite.
		x = float32(math.Ldexp(float64(float32(halved(mantissa))), exponent+1))
	} else {
		x = denormal(mantissa, exponent)
	}
	if negative {
		return -x
	}
	return x
}

// halved returns a mantissa as an integer that fits int64, half as large. Its lowest bit says, as before, whether there
// are bits below.
func halved(mantissa uint64) int64 { return int64(mantissa>>1 | mantissa&1) }

// denormal returns the denormal float32 nearest to mantissa * 2^exponent. It meets no tie: the middle of two denormals
// is n / 10^scale only for scales from 150 on.
func denormal(mantissa uint64, exponent int) float32 {
	shift := -149 - exponent // the least denormal is 2^-149
	if shift > 64 {
		return 0
	}
	units, below := mantissa>>shift, mantissa<<(64-shift)
	if below > 1<<63 {
		units++
	}
	return math.Float32frombits(uint32(units)) // 2^23 units are the least normal number
}
