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
	scale   uint // 0 for integers, realScale for float32
}

// realScale is the exponent of the least positive float32: each is a whole number of 2^-149.
const realScale = 149

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

// nearestRoot returns the float64 nearest to the root of a number that is not negative.
func nearestRoot(x *big.Rat) float64 {
	if x.Sign() == 0 {
		return 0
	}
	const precision = 128
	quotient := new(big.Float).SetPrec(precision).SetRat(x)
	root, _ := quotient.Sqrt(quotient).Float64()
	// The root was rounded twice. It is the nearest if x lies between the squares of the middles to its neighbours.
	for root > 0 && squareOfMiddle(math.Nextafter(root, 0), root).Cmp(x) > 0 {
		root = math.Nextafter(root, 0)
	}
	for squareOfMiddle(root, math.Nextafter(root, math.Inf(1))).Cmp(x) < 0 {
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

// maxSummands bounds the values of a partition: a sum of as many significands of 24 bits fits an int64.
const maxSummands = 1 << 38

// realSums sums finite float32 values and their squares, by their exponents: a normal float32 is a significand below
// 2^24 times 2^(exponent-150), exponent being 1 to 254; subnormal ones have the exponent 1, too.
type realSums struct {
	sum     [255]int64
	squares [255][2]uint64 // the low word first
}

func (s *realSums) add(x float32) {
	b := math.Float32bits(x)
	exponent, significand := b>>23&0xff, uint64(b&(1<<23-1))
	if exponent == 0 {
		exponent = 1
	} else {
		significand |= 1 << 23
	}
	if b>>31 == 0 {
		s.sum[exponent] += int64(significand)
	} else {
		s.sum[exponent] -= int64(significand)
	}
	var carry uint64
	squares := &s.squares[exponent]
	squares[0], carry = bits.Add64(squares[0], significand*significand, 0)
	squares[1] += carry
}

// moments returns the sums of count values.
func (s *realSums) moments(count int64) *moments {
	m := &moments{count: count, scale: realScale}
	var part, high big.Int
	for exponent := range s.sum {
		if squares := s.squares[exponent]; squares != [2]uint64{} {
			part.SetInt64(s.sum[exponent])
			m.sum.Add(&m.sum, part.Lsh(&part, uint(exponent-1)))
			high.SetUint64(squares[1])
			part.SetUint64(squares[0])
			part.Add(&part, high.Lsh(&high, 64))
			m.squares.Add(&m.squares, part.Lsh(&part, uint(2*(exponent-1))))
		}
	}
	return m
}
