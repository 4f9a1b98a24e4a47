package hashbytes

import (
	"encoding/binary"
	"math/bits"
)

// sparkSeed is the seed of Spark's function hash.
const sparkSeed = 42

// murmur3 is Murmur3_x86_32 whose tail is taken as Spark takes it: a round for each byte, sign-extended.
func murmur3(b []byte) uint32 {
	h, n := uint32(sparkSeed), uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		h = murmurRound(h, binary.LittleEndian.Uint32(b))
	}
	for _, c := range b {
		h = murmurRound(h, uint32(int32(int8(c))))
	}
	h ^= n
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// murmurRound takes a word of 32 bits into the hash.
func murmurRound(h, word uint32) uint32 {
	h ^= bits.RotateLeft32(word*0xcc9e2d51, 15) * 0x1b873593
	return bits.RotateLeft32(h, 13)*5 + 0xe6546b64
}
