package dataset

import "math/bits"

// What a stream is for enters its key, so that no two uses share random numbers.
const (
	domainSplits = 1
	domainRows   = 2
)

// golden is 2^64 divided by the golden ratio, splitmix64's increment (Steele, Lea, Flood, 2014).
const golden = 0x9e3779b97f4a7c15

// mix is splitmix64's finaliser: a bijection of 64 bits.
func mix(z uint64) uint64 {
	z ^= z >> 30
	z *= 0xbf58476d1ce4e5b9
	z ^= z >> 27
	z *= 0x94d049bb133111eb
	z ^= z >> 31
	return z
}

// stream is splitmix64. It is written out, and not math/rand's, because a plan must be the same in every release and
// in every language.
type stream uint64

// newStream starts a stream from the key of all parts.
func newStream(parts ...uint64) stream {
	var k uint64
	for _, x := range parts {
		k = mix((k ^ x) + golden)
	}
	return stream(k)
}

func (s *stream) next() uint64 {
	*s += golden
	return mix(uint64(*s))
}

// below returns a uniform number in [0, n), n > 0 (Lemire, "Fast random integer generation in an interval", 2019).
func (s *stream) below(n uint64) uint64 {
	hi, lo := bits.Mul64(s.next(), n)
	if lo < n {
		for reject := -n % n; lo < reject; {
			hi, lo = bits.Mul64(s.next(), n)
		}
	}
	return hi
}

// permute fills p with a permutation of 0..len(p)-1 (Fisher, Yates).
func permute(s *stream, p []uint32) {
	for i := range p {
		p[i] = uint32(i)
	}
	for i := len(p) - 1; i > 0; i-- {
		j := s.below(uint64(i) + 1)
		p[i], p[j] = p[j], p[i]
	}
}
