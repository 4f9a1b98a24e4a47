package hashbytes

import (
	"math/bits"
)

// The primes of the xxHash specification.
const (
	prime32x1 = 0x9E3779B1
	prime32x2 = 0x85EBCA77
	prime32x3 = 0xC2B2AE3D
	prime64x1 = 0x9E3779B185EBCA87
	prime64x2 = 0xC2B2AE3D27D4EB4F
	prime64x3 = 0x165667B19E3779F9
	prime64x4 = 0x85EBCA77C2B2AE63
	prime64x5 = 0x27D4EB2F165667C5
)

const (
	stripeSize      = 64
	stripesPerBlock = 16 // a block ends where the secret, eight bytes a stripe, is used up
)

// defaultSecret is the secret of the specification.
const defaultSecret = "" +
	"\xb8\xfe\x6c\x39\x23\xa4\x4b\xbe\x7c\x01\x81\x2c\xf7\x21\xad\x1c\xde\xd4\x6d\xe9\x83\x90\x97\xdb" +
	"\x72\x40\xa4\xa4\xb7\xb3\x67\x1f\xcb\x79\xe6\x4e\xcc\xc0\xe5\x78\x82\x5a\xd0\x7d\xcc\xff\x72\x21" +
	"\xb8\x08\x46\x74\xf7\x43\x24\x8e\xe0\x35\x90\xe6\x81\x3a\x26\x4c\x3c\x28\x52\xbb\x91\xc3\x00\xcb" +
	"\x88\xd0\x65\x8b\x1b\x53\x2e\xa3\x71\x64\x48\x97\xa2\x0d\xf9\x4e\x38\x19\xef\x46\xa9\xde\xac\xd8\xa8" +
	"\xfa\x76\x3f\xe3\x9c\x34\x3f\xf9\xdc\xbb\xc7\xc7\x0b\x4f\x1d\x8a\x51\xe0\x4b\xcd\xb4\x59\x31\xc8" +
	"\x9f\x7e\xc9\xd9\x78\x73\x64\xea\xc5\xac\x83\x34\xd3\xeb\xc3\xc5\x81\xa0\xff\xfa\x13\x63\xeb\x17" +
	"\x0d\xdd\x51\xb7\xf0\xda\x49\xd3\x16\x55\x26\x29\xd4\x68\x9e\x2b\x16\xbe\x58\x7d\x47\xa1\xfc\x8f" +
	"\xf8\xb8\xd1\x7a\xd0\x31\xce\x45\xcb\x3a\x8f\x95\x16\x04\x28\xaf\xd7\xfb\xca\xbb\x4b\x40\x7e"

// secret64 returns eight bytes of the secret.
func secret64(at int) uint64 { return text64(defaultSecret[at : at+8]) }

// text64 reads the first eight bytes of a string.
func text64(s string) uint64 {
	s = s[:8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// foldProduct returns the exclusive or of the halves of the product of 128 bits.
func foldProduct(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// avalancheLong ends the hashes of 9 bytes and more.
func avalancheLong(h uint64) uint64 {
	h ^= h >> 37
	h *= 0x165667919E3779F9
	return h ^ h>>32
}

// avalancheShort ends the hashes of 0 to 3 bytes.
func avalancheShort(h uint64) uint64 {
	h ^= h >> 33
	h *= prime64x2
	h ^= h >> 29
	h *= prime64x3
	return h ^ h>>32
}

// mixSixteen mixes the 16 bytes at an offset with the secret at another.
func mixSixteen(b []byte, at, secretAt int) uint64 {
	return foldProduct(word64(b, at)^secret64(secretAt), word64(b, at+8)^secret64(secretAt+8))
}

// xxh3 is XXH3_64bits with the seed 0.
func xxh3(b []byte) uint64 {
	n := len(b)
	switch {
	case n > 240:
		return xxh3Long(b)
	case n > 128:
		return xxh3To240(b)
	case n > 16:
		return xxh3To128(b)
	case n > 8:
		lo := word64(b, 0) ^ secret64(24) ^ secret64(32)
		hi := word64(b, n-8) ^ secret64(40) ^ secret64(48)
		return avalancheLong(uint64(n) + bits.ReverseBytes64(lo) + hi + foldProduct(lo, hi))
	case n > 3:
		h := (uint64(word32(b, n-4)) | uint64(word32(b, 0))<<32) ^ secret64(8) ^ secret64(16)
		h ^= bits.RotateLeft64(h, 49) ^ bits.RotateLeft64(h, 24)
		h *= 0x9FB21C651E98DF25
		h ^= h>>35 + uint64(n)
		h *= 0x9FB21C651E98DF25
		return h ^ h>>28
	case n > 0:
		word := uint32(b[0])<<16 | uint32(b[n>>1])<<24 | uint32(b[n-1]) | uint32(n)<<8
		secret := secret64(0)
		return avalancheShort(uint64(word ^ uint32(secret) ^ uint32(secret>>32)))
	}
	return avalancheShort(secret64(56) ^ secret64(64))
}

// xxh3To128 hashes 17 to 128 bytes, from both ends to the middle.
func xxh3To128(b []byte) uint64 {
	n := len(b)
	h := uint64(n) * prime64x1
	for pair := (n - 1) / 32; pair >= 0; pair-- {
		h += mixSixteen(b, 16*pair, 32*pair) + mixSixteen(b, n-16*(pair+1), 32*pair+16)
	}
	return avalancheLong(h)
}

// xxh3To240 hashes 129 to 240 bytes.
func xxh3To240(b []byte) uint64 {
	n := len(b)
	h := uint64(n) * prime64x1
	for i := range 8 {
		h += mixSixteen(b, 16*i, 16*i)
	}
	h = avalancheLong(h)
	for i := 8; i < n/16; i++ {
		h += mixSixteen(b, 16*i, 16*(i-8)+3)
	}
	return avalancheLong(h + mixSixteen(b, n-16, 119))
}

// xxh3Long hashes more than 240 bytes in stripes of 64 bytes, 16 of them a block.
func xxh3Long(b []byte) uint64 {
	n := len(b)
	lanes := [8]uint64{prime32x3, prime64x1, prime64x2, prime64x3, prime64x4, prime32x2, prime64x5, prime32x1}
	stripes := (n - 1) / stripeSize // whole ones but the last
	for i := range stripes {
		place := i % stripesPerBlock
		takeStripe(&lanes, b[i*stripeSize:], 8*place)
		if place == stripesPerBlock-1 {
			scramble(&lanes)
		}
	}
	takeStripe(&lanes, b[n-stripeSize:], 121)
	h := uint64(n) * prime64x1
	for i := 0; i < 8; i += 2 {
		h += foldProduct(lanes[i]^secret64(11+8*i), lanes[i+1]^secret64(19+8*i))
	}
	return avalancheLong(h)
}

// takeStripe takes 64 bytes into the lanes.
func takeStripe(lanes *[8]uint64, b []byte, secretAt int) {
	b = b[:stripeSize]
	s := defaultSecret[secretAt : secretAt+stripeSize]
	lanes[0], lanes[1] = takeWords(lanes[0], lanes[1], word64(b, 0), word64(b, 8), text64(s[0:]), text64(s[8:]))
	lanes[2], lanes[3] = takeWords(lanes[2], lanes[3], word64(b, 16), word64(b, 24), text64(s[16:]), text64(s[24:]))
	lanes[4], lanes[5] = takeWords(lanes[4], lanes[5], word64(b, 32), word64(b, 40), text64(s[32:]), text64(s[40:]))
	lanes[6], lanes[7] = takeWords(lanes[6], lanes[7], word64(b, 48), word64(b, 56), text64(s[48:]), text64(s[56:]))
}

// takeWords takes two words into two lanes: each lane takes the product of its own word's halves, and the other word.
func takeWords(even, odd, first, second, firstSecret, secondSecret uint64) (newEven, newOdd uint64) {
	x, y := first^firstSecret, second^secondSecret
	return even + second + (x&(1<<32-1))*(x>>32), odd + first + (y&(1<<32-1))*(y>>32)
}

// scramble ends a block.
func scramble(lanes *[8]uint64) {
	for i := range lanes {
		lanes[i] = (lanes[i] ^ lanes[i]>>47 ^ secret64(128+8*i)) * prime32x1
	}
}
