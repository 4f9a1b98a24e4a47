package accumulator

import (
	"math"
	"math/big"
	"math/bits"
)

// moments are the exact sums of finite values and of their squares, in units of 2^-scale and 2^-(2*scale).
type moments struct {
	count   int64
	sum     big.Int
	squares big.Int
	scale   uint // 0 for integers, realScale for real numbers
}

// realScale is the exponent of the least positive float64: each is a whole number of 2^-1074.
const realScale = 1074

// merge adds the sums of other values of the same scale.
func (m *moments) merge(other *moments) {
	m.count += other.count
	m.sum.Add(&m.sum, &other.sum)
	m.squares.Add(&m.squares, &other.squares)
	m.scale = other.scale
}

// mean returns the float64 nearest to the mean of the values and an offset, which is 0 unless they are integers. The
// count must not be 0.
func (m *moments) mean(offset uint64) float64 {
	divisor := new(big.Int).Lsh(big.NewInt(m.count), m.scale)
	mean := new(big.Rat).SetFrac(&m.sum, divisor)
	nearest, _ := mean.Add(mean, new(big.Rat).SetUint64(offset)).Float64()
	return nearest
}

// deviation returns the float64 nearest to the root of the variance, whose divisor is the count less one. The count
// must be above 1.
func (m *moments) deviation() float64 {
	count := big.NewInt(m.count)
	spread := new(big.Int).Mul(count, &m.squares)
	spread.Sub(spread, new(big.Int).Mul(&m.sum, &m.sum))
	divisor := new(big.Int).Mul(count, big.NewInt(m.count-1))
	divisor.Lsh(divisor, 2*m.scale)
	return nearestRoot(new(big.Rat).SetFrac(spread, divisor))
}

// nearestRoot returns the finite float64 nearest to the root of a number that is not negative.
func nearestRoot(x *big.Rat) float64 {
	if x.Sign() == 0 {
		return 0
	}
	const precision = 128
	quotient := new(big.Float).SetPrec(precision).SetRat(x)
	root, _ := quotient.Sqrt(quotient).Float64()
	root = min(root, math.MaxFloat64)
	// The root was rounded twice. It is the nearest if x lies between the squares of the middles to its neighbours.
	for root > 0 && squareOfMiddle(math.Nextafter(root, 0), root).Cmp(x) > 0 {
		root = math.Nextafter(root, 0)
	}
	for root < math.MaxFloat64 && squareOfMiddle(root, math.Nextafter(root, math.Inf(1))).Cmp(x) < 0 {
		root = math.Nextafter(root, math.Inf(1))
	}
	return root
}

// squareOfMiddle returns the square of the number between two.
func squareOfMiddle(a, b float64) *big.Rat {
	middle := new(big.Rat).Add(new(big.Rat).SetFloat64(a), new(big.Rat).SetFloat64(b))
	middle.Mul(middle, big.NewRat(1, 2))
	return middle.Mul(middle, middle)
}

// integerSums sums int64 values and their squares.
type integerSums struct {
	sum     [2]uint64 // two's complement, the low word first
	squares [3]uint64 // the low word first
}

func (s *integerSums) add(x int64) {
	var carry uint64
	s.sum[0], carry = bits.Add64(s.sum[0], uint64(x), 0)
	s.sum[1], _ = bits.Add64(s.sum[1], uint64(x>>63), carry)
	size := uint64(x)
	if x < 0 {
		size = -size
	}
	high, low := bits.Mul64(size, size)
	s.squares[0], carry = bits.Add64(s.squares[0], low, 0)
	s.squares[1], carry = bits.Add64(s.squares[1], high, carry)
	s.squares[2] += carry
}

// moments returns the sums of count values.
func (s *integerSums) moments(count int64) *moments {
	m := &moments{count: count}
	m.sum.SetInt64(int64(s.sum[1]))
	m.sum.Lsh(&m.sum, 64)
	m.sum.Add(&m.sum, new(big.Int).SetUint64(s.sum[0]))
	for i := len(s.squares) - 1; i >= 0; i-- {
		m.squares.Lsh(&m.squares, 64)
		m.squares.Add(&m.squares, new(big.Int).SetUint64(s.squares[i]))
	}
	return m
}

// maxSummands bounds the values of a partition: the sums of as many significands of 53 bits, and of their squares, fit
// integerSums.
const maxSummands = 1 << 38

// exponents is the number of exponents of finite float64 numbers.
const exponents = 0x7ff

// realSums sums finite float64 values and their squares, by their exponents: a normal float64 is a significand below
// 2^53 times 2^(exponent-1075), exponent being 1 to 2046; subnormal ones have the exponent 1, too. It is nil, or has
// an element for each exponent.
type realSums []integerSums

func (s *realSums) add(x float64) {
	if *s == nil {
		*s = make(realSums, exponents)
	}
	b := math.Float64bits(x)
	exponent, significand := b>>52&0x7ff, int64(b&(1<<52-1))
	if exponent == 0 {
		exponent = 1
	} else {
		significand |= 1 << 52
	}
	if b>>63 != 0 {
		significand = -significand
	}
	(*s)[exponent].add(significand)
}

// moments returns the sums of count values.
func (s realSums) moments(count int64) *moments {
	m := &moments{count: count, scale: realScale}
	var part big.Int
	for exponent := range s {
		if s[exponent] == (integerSums{}) {
			continue
		}
		of := s[exponent].moments(0)
		m.sum.Add(&m.sum, part.Lsh(&of.sum, uint(exponent-1)))
		m.squares.Add(&m.squares, part.Lsh(&of.squares, uint(2*(exponent-1))))
	}
	return m
}
