package sigridhash

import "encoding/binary"

// hashGeneric is the path of plain Go, and the oracle of the others.
func hashGeneric(h *Hasher, dst, src []int64) {
	salt, div := h.salt, h.div
	for i, id := range src {
		dst[i] = div.Mod(int64(mix(salt, uint64(id))))
	}
}

// hash32Generic is the same of Hash32.
func hash32Generic(h *Hasher, dst []byte, src []int64) {
	var block [64]int64
	for len(src) > 0 {
		n := min(len(block), len(src))
		hashGeneric(h, block[:n], src[:n])
		for i, x := range block[:n] {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(x))
		}
		dst, src = dst[4*n:], src[n:]
	}
}

// mulHash128 is the multiplier of folly's hash_128_to_64, which is CityHash's.
const mulHash128 = 0x9ddfea08eb382d69

// mix is hash_128_to_64(salt, twang_mix64(k)).
func mix(salt, k uint64) uint64 { return mixSalt(salt, mixID(k)) }

// mixID is twang_mix64(k) with the sums of shifts folded into multiplications.
func mixID(k uint64) uint64 {
	k = ^k + k<<21
	k ^= k >> 24
	k *= 1 + 1<<3 + 1<<8
	k ^= k >> 14
	k *= 1 + 1<<2 + 1<<4
	k ^= k >> 28
	return k + k<<31
}

// mixSalt is hash_128_to_64(salt, k).
func mixSalt(salt, k uint64) uint64 {
	a := (k ^ salt) * mulHash128
	a ^= a >> 47
	b := (salt ^ a) * mulHash128
	b ^= b >> 47
	return b * mulHash128
}
