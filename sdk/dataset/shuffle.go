package dataset

import "math/bits"

// goldenIncrement is 2^64 divided by the golden ratio, the increment of splitmix64 (Steele, Lea, Flood, 2014).
const goldenIncrement = 0x9e3779b97f4a7c15

// mix is the finaliser of splitmix64: a bijection of 64 bits.
func mix(z uint64) uint64 {
	z ^= z >> 30
	z *= 0xbf58476d1ce4e5b9
	z ^= z >> 27
	z *= 0x94d049bb133111eb
	z ^= z >> 31
	return z
}

// generator is splitmix64. It is written out here and not taken from math/rand, because a plan must be the same in
// every release and in every language.
type generator uint64

// newGenerator starts a generator from the key of all parts.
func newGenerator(parts ...uint64) generator {
	var key uint64
	for _, part := range parts {
		key = mix((key ^ part) + goldenIncrement)
	}
	return generator(key)
}

// next returns 64 random bits.
func (g *generator) next() uint64 {
	*g += goldenIncrement
	return mix(uint64(*g))
}

// below returns a uniform number in [0, n), n > 0 (Lemire, "Fast random integer generation in an interval", 2019).
func (g *generator) below(n uint64) uint64 {
	hi, lo := bits.Mul64(g.next(), n)
	if lo < n {
		for reject := -n % n; lo < reject; {
			hi, lo = bits.Mul64(g.next(), n)
		}
	}
	return hi
}

// permute fills the slice with a permutation of 0..len-1 (Fisher, Yates).
func permute(g *generator, permutation []uint32) {
	for i := range permutation {
		permutation[i] = uint32(i)
	}
	for i := len(permutation) - 1; i > 0; i-- {
		j := g.below(uint64(i) + 1)
		permutation[i], permutation[j] = permutation[j], permutation[i]
	}
}
