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
type Hasher struct{ buckets floormod.Unsigned }

// New returns a hasher of buckets 0 to buckets - 1.
func New(buckets int64) (Hasher, error) {
	if buckets < 1 {
		return Hasher{}, fmt.Errorf("%d buckets: %w", buckets, ErrBuckets)
	}
	return Hasher{floormod.NewUnsigned(buckets)}, nil
}

// Buckets sets dst[i] to the bucket of ids[i]. Both have the same length. dst may be ids.
func (h Hasher) Buckets(dst, ids []int64) {
	ids = ids[:len(dst)]
	for i, id := range ids {
		dst[i] = int64(mix(uint64(id)))
	}
	h.buckets.Reduce(dst, dst)
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
	h.buckets.Reduce(dst, dst)
}

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= firstMultiplier
	x ^= x >> 27
	x *= secondMultiplier
	return x ^ x>>31
}
