package sigridhash

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/millrace/millrace/fpga/unit/checksum"
	"github.com/millrace/millrace/fpga/unit/internal/floormod"
)

// ErrMax says that max is not above zero.
var ErrMax = errors.New("sigrid_hash: max must be larger than 0")

// Params are the operator's parameters: every result is in [0, Max), 1 <= Max <= 2^63-1.
type Params struct {
	Salt, Max int64
}

// Hasher hashes ids with one salt into one range.
type Hasher struct {
	salt uint64
	div  floormod.Divisor
	one  bool // max is 1: every id is 0, without hashing
}

// New returns a Hasher, or ErrMax.
func New(p Params) (*Hasher, error) {
	if p.Max <= 0 {
		return nil, fmt.Errorf("max %d: %w", p.Max, ErrMax)
	}
	if p.Max == 1 {
		return &Hasher{one: true}, nil
	}
	return &Hasher{salt: uint64(p.Salt), div: floormod.New(p.Max)}, nil
}

// Hash sets dst[i] to the hash of src[i] for every i of src. dst must be at least as long as src and may be src.
func (h *Hasher) Hash(dst, src []int64) {
	dst = dst[:len(src)]
	if h.one {
		clear(dst)
		return
	}
	hash.Pick()(h, dst, src)
}

// Fits32 reports whether every hash is an int32.
func (h *Hasher) Fits32() bool { return h.one || h.div.D() <= 1<<31 }

// Hash32 writes the low 32 bits of the hash of src[i], which are all of it where Fits32 is true, as little-endian bytes
// dst[4*i:4*i+4], for every i of src. dst must have room for all, and share no byte with src.
func (h *Hasher) Hash32(dst []byte, src []int64) {
	dst = dst[:4*len(src)]
	if h.one {
		clear(dst)
		return
	}
	hash32.Pick()(h, dst, src)
}

// Hash32Sum is Hash32, and returns the checksum of earlier bytes followed by the bytes of src; sum is the checksum of
// the earlier bytes. Ids that come from memory are read once for both.
func (h *Hasher) Hash32Sum(dst []byte, src []int64, sum uint32) uint32 {
	done := 0
	if !h.one {
		sum, done = hash32Sum(h, dst[:4*len(src)], src, sum)
	}
	dst, src = dst[4*done:], src[done:]
	h.Hash32(dst, src)
	return checksum.Update(sum, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(src))), 8*len(src)))
}

// MixIDs computes the part of Combine's hash that depends on the ids alone. Both have the same length.
func MixIDs(dst []uint64, ids []int64) {
	for i, id := range ids[:len(dst)] {
		dst[i] = mixID(uint64(id))
	}
}

// CombineMixed sets dst[i] to what Combine returns for a salt and the id that MixIDs made mixed[i] of. Both have the
// same length.
func CombineMixed(dst []int64, mixed []uint64, salt int64) {
	for i, id := range mixed[:len(dst)] {
		dst[i] = int64(mixSalt(uint64(salt), id))
	}
}

// Combine returns the hash of an id with a salt before the modulus, for units that fold ids.
func Combine(id, salt int64) int64 { return int64(mix(uint64(salt), uint64(id))) }
