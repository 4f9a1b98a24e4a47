package main

import (
	"math"
	"math/bits"
)

// operators are a pipeline's operators over a block of one column. Nulls are filled before.
type operators interface {
	// denseInt and denseFloat clamp at zero, add 1 and take the logarithm.
	denseInt(dst []float32, x []int32)
	denseFloat(dst, x []float32)
	// ids hashes. lengths are of the lists that x holds one behind the other, nil if every row has one id.
	ids(dst []int32, x []int64, lengths []int32)
	// bucketInt and bucketFloat find the bucket and hash it.
	bucketInt(dst []int32, x []int32)
	bucketFloat(dst []int32, x []float32)
}

// plain are the operators as a programmer writes them in Go: one loop a column, with every constant computed once.
type plain struct {
	borders []float32
	max     int64
	hash    func(uint64) uint64 // nil: SigridHash's with salt 0
}

func (p *plain) denseInt(dst []float32, x []int32) {
	for i, v := range x {
		dst[i] = float32(math.Log(float64(float32(max(v, 0)) + 1)))
	}
}

func (p *plain) denseFloat(dst, x []float32) {
	for i, v := range x {
		dst[i] = float32(math.Log(float64(max(v, 0) + 1)))
	}
}

func (p *plain) ids(dst []int32, x []int64, _ []int32) {
	for i, v := range x {
		dst[i] = p.id(v)
	}
}

func (p *plain) bucketInt(dst, x []int32) {
	for i, v := range x {
		dst[i] = p.id(int64(lowerBound(p.borders, float32(v))))
	}
}

func (p *plain) bucketFloat(dst []int32, x []float32) {
	for i, v := range x {
		dst[i] = p.id(int64(lowerBound(p.borders, v)))
	}
}

func (p *plain) id(v int64) int32 {
	if p.hash != nil { // unsigned, as the SQL has it
		return int32(p.hash(uint64(v)) % uint64(p.max))
	}
	r := int64(sigrid(uint64(v), 0)) % p.max
	if r < 0 {
		r += p.max
	}
	return int32(r)
}

// lowerBound returns how many borders are below v, for borders that increase.
func lowerBound(borders []float32, v float32) int {
	low, n := 0, len(borders)
	for n > 0 {
		half := n / 2
		if borders[low+half] < v {
			low += half + 1
			n -= half + 1
		} else {
			n = half
		}
	}
	return low
}

// sigrid is folly's hash_128_to_64(salt, twang_mix64(k)), of which SigridHash takes the modulus.
func sigrid(k, salt uint64) uint64 {
	k = ^k + k<<21
	k ^= k >> 24
	k *= 1 + 1<<3 + 1<<8
	k ^= k >> 14
	k *= 1 + 1<<2 + 1<<4
	k ^= k >> 28
	k += k << 31
	const m = 0x9ddfea08eb382d69
	a := (k ^ salt) * m
	a ^= a >> 47
	b := (salt ^ a) * m
	b ^= b >> 47
	return b * m
}

// duckHash is DuckDB's hash of a BIGINT: two rounds of shift and multiply.
func duckHash(k uint64) uint64 {
	const m = 0xd6e8feb86659fd93
	k ^= k >> 32
	k *= m
	k ^= k >> 32
	k *= m
	return k ^ k>>32
}

// torchArrow are TorchArrow's scalar loops, written in Go after csrc/velox/functions/rec: an operator is a pass over
// the column with a vector of its own for the result, and computes constants again for each row. Bucketize checks
// that all borders increase; SigridHash divides 2^(64+l) by max in 128 bits, once a row (once a list for lists). The
// work of Velox around the loops (null bitmaps, vector encodings, allocation) is left out, which favours TorchArrow.
type torchArrow struct {
	borders []float32
	max     int64

	clamped, added []float32
	clampedInt     []int32
	buckets        []int64
}

func (t *torchArrow) denseInt(dst []float32, x []int32) {
	t.clampedInt = grow(t.clampedInt, len(x))
	for i, v := range x {
		t.clampedInt[i] = max(v, 0)
	}
	t.added = grow(t.added, len(x))
	for i, v := range t.clampedInt {
		t.added[i] = float32(v) + 1
	}
	t.log(dst, t.added)
}

func (t *torchArrow) denseFloat(dst, x []float32) {
	t.clamped = grow(t.clamped, len(x))
	for i, v := range x {
		t.clamped[i] = max(v, 0)
	}
	t.added = grow(t.added, len(x))
	for i, v := range t.clamped {
		t.added[i] = v + 1
	}
	t.log(dst, t.added)
}

func (t *torchArrow) log(dst, x []float32) {
	for i, v := range x {
		dst[i] = float32(math.Log(float64(v)))
	}
}

func (t *torchArrow) ids(dst []int32, x []int64, lengths []int32) {
	if lengths == nil {
		for i, v := range x {
			m, s := multiplierAndShift(t.max)
			dst[i] = int32(shiftedModulo(int64(sigrid(uint64(v), 0)), t.max, m, s))
		}
		return
	}
	at := 0
	for _, n := range lengths {
		m, s := multiplierAndShift(t.max)
		for range n {
			dst[at] = int32(shiftedModulo(int64(sigrid(uint64(x[at]), 0)), t.max, m, s))
			at++
		}
	}
}

func (t *torchArrow) bucketInt(dst, x []int32) {
	t.buckets = grow(t.buckets, len(x))
	for i, v := range x {
		t.buckets[i] = t.bucket(float32(v))
	}
	t.ids(dst, t.buckets, nil)
}

func (t *torchArrow) bucketFloat(dst []int32, x []float32) {
	t.buckets = grow(t.buckets, len(x))
	for i, v := range x {
		t.buckets[i] = t.bucket(v)
	}
	t.ids(dst, t.buckets, nil)
}

// bucket checks all borders, as each call of the original does, and answers -1 for bad ones, which fails the
// comparison.
func (t *torchArrow) bucket(v float32) int64 {
	b := t.borders
	for i := 1; i < len(b); i++ {
		if b[i-1] > b[i] {
			return -1
		}
	}
	return int64(lowerBound(b, v))
}

// multiplierAndShift is TorchArrow's computeMultiperAndShift(d, 63).
func multiplierAndShift(d int64) (uint64, uint) {
	l := uint(math.Ceil(math.Log2(float64(d))))
	// 2^(64+l)/d and (2^(64+l) + 2^(l+1))/d, both in 128 bits.
	lowHi, lowLo := divide(1<<l, 0, uint64(d))
	hi := uint64(1) << l
	if l == 63 {
		hi++ // 2^(l+1) is 2^64
	}
	highHi, highLo := divide(hi, 1<<(l+1), uint64(d))
	for l > 0 {
		a, b := lowHi<<63|lowLo>>1, highHi<<63|highLo>>1
		if lowHi>>1 > highHi>>1 || lowHi>>1 == highHi>>1 && a >= b {
			break
		}
		lowHi, lowLo, highHi, highLo = lowHi>>1, a, highHi>>1, b
		l--
	}
	return highLo, l
}

// divide returns (hi:lo)/d in 128 bits.
func divide(hi, lo, d uint64) (uint64, uint64) {
	q1, r := hi/d, hi%d
	q0, _ := bits.Div64(r, lo, d)
	return q1, q0
}

// shiftedModulo is the non-negative remainder of h by d, by multiplication and shift.
func shiftedModulo(h, d int64, m uint64, s uint) int64 {
	sign := h >> 63
	hi, _ := bits.Mul64(m, uint64(sign^h))
	return h - (sign^int64(hi>>s))*d
}

func grow[T any](b []T, n int) []T {
	if cap(b) < n {
		return make([]T, n)
	}
	return b[:n]
}
