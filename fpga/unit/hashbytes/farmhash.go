package hashbytes

import (
	"encoding/binary"
	"math/bits"
)

// The multipliers of FarmHash.
const (
	farmK0 = 0xc3a5c85c97cb3127
	farmK1 = 0xb492b66fbe98f273
	farmK2 = 0x9ae16a3b2f90404f
)

func word64(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

func word32(b []byte, at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }

func rotateRight(x uint64, by int) uint64 { return bits.RotateLeft64(x, -by) }

func shiftMix(x uint64) uint64 { return x ^ x>>47 }

// farmPair hashes two words to one.
func farmPair(u, v, mul uint64) uint64 {
	a := shiftMix((u ^ v) * mul)
	return shiftMix((v^a)*mul) * mul
}

// farmHash is FarmHash's Fingerprint64.
func farmHash(b []byte) uint64 {
	n := len(b)
	switch {
	case n > 64:
		return farmLong(b)
	case n > 32:
		return farm33To64(b)
	case n > 16:
		return farm17To32(b)
	case n >= 8:
		mul := farmK2 + uint64(n)*2
		first, last := word64(b, 0)+farmK2, word64(b, n-8)
		return farmPair(rotateRight(last, 37)*mul+first, (rotateRight(first, 25)+last)*mul, mul)
	case n >= 4:
		mul := farmK2 + uint64(n)*2
		return farmPair(uint64(n)+uint64(word32(b, 0))<<3, uint64(word32(b, n-4)), mul)
	case n > 0:
		y := uint32(b[0]) + uint32(b[n>>1])<<8
		z := uint32(n) + uint32(b[n-1])<<2
		return shiftMix(uint64(y)*farmK2^uint64(z)*farmK0) * farmK2
	}
	return farmK2
}

func farm17To32(b []byte) uint64 {
	n := len(b)
	mul := farmK2 + uint64(n)*2
	w0, w1 := word64(b, 0)*farmK1, word64(b, 8)
	w2, w3 := word64(b, n-8)*mul, word64(b, n-16)*farmK2
	return farmPair(rotateRight(w0+w1, 43)+rotateRight(w2, 30)+w3, w0+rotateRight(w1+farmK2, 18)+w2, mul)
}

func farm33To64(b []byte) uint64 {
	n := len(b)
	mul := farmK2 + uint64(n)*2
	w0, w1 := word64(b, 0)*farmK2, word64(b, 8)
	w2, w3 := word64(b, n-8)*mul, word64(b, n-16)*farmK2
	y := rotateRight(w0+w1, 43) + rotateRight(w2, 30) + w3
	z := farmPair(y, w0+rotateRight(w1+farmK2, 18)+w2, mul)
	w4, w5 := word64(b, 16)*mul, word64(b, 24)
	w6, w7 := (y+word64(b, n-32))*mul, (z+word64(b, n-24))*mul
	return farmPair(rotateRight(w4+w5, 43)+rotateRight(w6, 30)+w7, w4+rotateRight(w5+w0, 18)+w6, mul)
}

// farmState is the 56 bytes of state of long values.
type farmState struct{ x, y, z, v0, v1, w0, w1 uint64 }

// farmLong hashes more than 64 bytes: blocks of 64, and then the last 64 bytes, which may overlap the block before.
func farmLong(b []byte) uint64 {
	seed := uint64(81) // a variable, because the products exceed a constant's 64 bits
	s := farmState{y: seed*farmK1 + 113}
	s.z = shiftMix(s.y*farmK2+113) * farmK2
	s.x = seed*farmK2 + word64(b, 0)
	rest := uint64(len(b)-1) & 63
	last := b[len(b)-64:]
	for ; len(b) > 64; b = b[64:] {
		s.takeBlock(b, farmK1, 1)
	}
	mul := farmK1 + (s.z&0xff)<<1
	s.w0 += rest
	s.v0 += s.w0
	s.w0 += s.v0
	s.takeBlock(last, mul, 9)
	return farmPair(farmPair(s.v0, s.w0, mul)+shiftMix(s.y)*farmK0+s.z, farmPair(s.v1, s.w1, mul)+s.x, mul)
}

// takeBlock takes 64 bytes into the state. factor is 9 for the last block and 1 for the others.
func (s *farmState) takeBlock(b []byte, mul, factor uint64) {
	b = b[:64]
	x := rotateRight(s.x+s.y+s.v0+word64(b, 8), 37)*mul ^ s.w1*factor
	y := rotateRight(s.y+s.v1+word64(b, 48), 42)*mul + s.v0*factor + word64(b, 40)
	z := rotateRight(s.z+s.w0, 33) * mul
	s.v0, s.v1 = farmWeak(b[:32], s.v1*mul, x+s.w0)
	s.w0, s.w1 = farmWeak(b[32:], z+s.w1, y+word64(b, 16))
	s.x, s.y, s.z = z, y, x
}

// farmWeak hashes 32 bytes with two seeds to two words.
func farmWeak(b []byte, first, second uint64) (uint64, uint64) {
	w0, w3 := word64(b, 0), word64(b, 24)
	first += w0
	second = rotateRight(second+first+w3, 21)
	before := first
	first += word64(b, 8) + word64(b, 16)
	return first + w3, second + rotateRight(first, 44) + before
}
