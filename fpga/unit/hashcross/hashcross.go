package hashcross

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/unit/internal/floormod"
)

// ErrBuckets says that the number of buckets is not above 0.
var ErrBuckets = errors.New("hash_cross: buckets must be above 0")

// The multipliers of SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014; Stafford's Mix13).
const (
	firstMultiplier  = 0xbf58476d1ce4e5b9
	secondMultiplier = 0x94d049bb133111eb
)

// Hasher hashes ids into buckets.
type Hasher struct {
	divisor floormod.Divisor // of a number of buckets above 1
	buckets uint64
	topRest uint64 // 2^63 mod buckets
}

// New returns a hasher of buckets 0 to buckets - 1.
func New(buckets int64) (Hasher, error) {
	switch {
	case buckets < 1:
		return Hasher{}, fmt.Errorf("%d buckets: %w", buckets, ErrBuckets)
	case buckets == 1:
		return Hasher{buckets: 1}, nil
	}
	n := uint64(buckets)
	return Hasher{divisor: floormod.New(buckets), buckets: n, topRest: 1 << 63 % n}, nil
}

// Buckets sets dst[i] to the bucket of ids[i]. Both have the same length. dst may be ids.
func (h Hasher) Buckets(dst, ids []int64) {
	ids = ids[:len(dst)]
	for i, id := range ids {
		dst[i] = int64(mix(uint64(id)))
	}
	h.reduce(dst)
}

// Cross sets dst[i] to the bucket of the ids columns[0][i], columns[1][i] and so on. All columns have at least the
// length of dst; dst may be the first of them, and overlaps no other.
func (h Hasher) Cross(dst []int64, columns [][]int64) {
	if len(columns) == 0 {
		clear(dst)
		return
	}
	for i, id := range columns[0][:len(dst)] {
		dst[i] = int64(mix(uint64(id)))
	}
	for _, column := range columns[1:] {
		for i, id := range column[:len(dst)] {
			dst[i] ^= int64(mix(uint64(id)))
		}
	}
	h.reduce(dst)
}

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= firstMultiplier
	x ^= x >> 27
	x *= secondMultiplier
	return x ^ x>>31
}

// reduce replaces hashes by their remainders. The highest bit of a hash, which makes it negative as an int64, is
// divided apart from the other 63.
func (h Hasher) reduce(hashes []int64) {
	if h.buckets == 1 {
		clear(hashes)
		return
	}
	for i, x := range hashes {
		rest := uint64(h.divisor.Mod(int64(uint64(x) &^ (1 << 63))))
		rest += h.topRest & uint64(x>>63)
		if rest >= h.buckets {
			rest -= h.buckets
		}
		hashes[i] = int64(rest)
	}
}
