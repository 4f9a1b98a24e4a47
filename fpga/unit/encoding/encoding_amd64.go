//go:build !purego

package encoding

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	unpack32 = simd.Paths[func(dst []uint32, src []byte, bit int, width uint)]{unpack32Generic, unpack32AVX2,
		unpack32AVX512}
	unpack64 = simd.Paths[func(dst []int64, src []byte, bit int, width uint)]{unpack64Generic, unpack64AVX2,
		unpack64AVX2}
	gather64 = simd.Paths[func(dst, dict []uint64, idx []uint32) int]{gatherGeneric[uint64], gather64AVX2,
		gather64AVX512}
	gather32 = simd.Paths[func(dst, dict []uint32, idx []uint32) int]{gatherGeneric[uint32], gather32AVX2,
		gather32AVX512}
	gatherSigned = simd.Paths[func(dst []int64, dict []int32, idx []uint32) int]{widenGeneric[int32],
		gatherSignedAVX2, gatherSignedAVX512}
	gatherUnsigned = simd.Paths[func(dst []int64, dict []uint32, idx []uint32) int]{widenGeneric[uint32],
		gatherUnsignedAVX2, gatherUnsignedAVX512}
	sum      = simd.Paths[func(v []int64, least, last int64)]{sumGeneric, sumAVX2, sumAVX512}
	join4    = simd.Paths[func(dst []uint32, src []byte, stride int)]{join4Generic, join4AVX2, join4AVX512}
	join8    = simd.Paths[func(dst []uint64, src []byte, stride int)]{join8Generic, join8AVX2, join8AVX512}
	spread64 = simd.Paths[func(v []uint64, valid []byte, there int)]{spreadGeneric[uint64], spread64AVX2,
		spread64AVX512}
	spread32 = simd.Paths[func(v []uint32, valid []byte, there int)]{spreadGeneric[uint32], spread32AVX2,
		spread32AVX512}
)

// The most bits that a value can have where it is taken from two words of 16 bits, or with AVX2 from four bytes or from
// eight, at any bit of the first.
const (
	narrow512            = 17
	narrow256, widest256 = 25, 57
)

func unpack32AVX512(dst []uint32, src []byte, bit int, width uint) {
	switch {
	case len(dst) == 0:
	case len(src) == 0:
		clear(dst)
	case width <= narrow512:
		unpackNarrow512(&dst[0], &src[0], len(dst), bit, int(width), len(src))
	default:
		unpackWide512(&dst[0], &src[0], len(dst), bit, int(width), len(src))
	}
}

func unpack32AVX2(dst []uint32, src []byte, bit int, width uint) {
	done := 0
	switch {
	case len(dst) == 0 || len(src) == 0:
	case width <= narrow256:
		done = unpackNarrow256(&dst[0], &src[0], len(dst), bit, int(width), len(src))
	default:
		done = unpackWide256(&dst[0], &src[0], len(dst), bit, int(width), len(src))
	}
	unpack32Generic(dst[done:], src[min(done/8*int(width), len(src)):], bit, width)
}

// unpack64AVX2 is what AVX-512 takes too: words of 16 bits are no better where a value takes four of them.
func unpack64AVX2(dst []int64, src []byte, bit int, width uint) {
	done := 0
	if len(dst) > 0 && len(src) > 0 && width <= widest256 {
		done = unpackWidest256(&dst[0], &src[0], len(dst), bit, int(width), len(src))
	}
	unpack64Generic(dst[done:], src[min(done/8*int(width), len(src)):], bit, width)
}

// The kernels stop before a vector in which an index is none; the plain path finds it there.

func gather64AVX512(dst, dict []uint64, idx []uint32) int {
	return lookUp(gather64x512, gatherGeneric[uint64], dst, dict, idx)
}

func gather32AVX512(dst, dict []uint32, idx []uint32) int {
	return lookUp(gather32x512, gatherGeneric[uint32], dst, dict, idx)
}

func gatherSignedAVX512(dst []int64, dict []int32, idx []uint32) int {
	return lookUp(gatherSignedx512, widenGeneric[int32], dst, dict, idx)
}

func gatherUnsignedAVX512(dst []int64, dict []uint32, idx []uint32) int {
	return lookUp(gatherUnsignedx512, widenGeneric[uint32], dst, dict, idx)
}

func gather64AVX2(dst, dict []uint64, idx []uint32) int {
	return lookUp(gather64x256, gatherGeneric[uint64], dst, dict, idx)
}

func gather32AVX2(dst, dict []uint32, idx []uint32) int {
	return lookUp(gather32x256, gatherGeneric[uint32], dst, dict, idx)
}

func gatherSignedAVX2(dst []int64, dict []int32, idx []uint32) int {
	return lookUp(gatherSignedx256, widenGeneric[int32], dst, dict, idx)
}

func gatherUnsignedAVX2(dst []int64, dict []uint32, idx []uint32) int {
	return lookUp(gatherUnsignedx256, widenGeneric[uint32], dst, dict, idx)
}

func sumAVX512(v []int64, least, last int64) {
	if len(v) > 0 {
		sums512(&v[0], len(v), least, last)
	}
}

func sumAVX2(v []int64, least, last int64) {
	whole := len(v) &^ 3
	if whole > 0 {
		last = sums256(&v[0], whole, least, last)
	}
	sumGeneric(v[whole:], least, last)
}

func join4AVX512(dst []uint32, src []byte, stride int) {
	join4x512(&dst[0], &src[0], len(dst), stride)
}

// join8AVX512 leaves whole vectors to the kernel of AVX2, whose bytes are moved in three steps and not each by itself.
func join8AVX512(dst []uint64, src []byte, stride int) {
	whole := len(dst) &^ 31
	if whole > 0 {
		join8x256(&dst[0], &src[0], whole, stride)
	}
	if rest := dst[whole:]; len(rest) > 0 {
		join8x512(&rest[0], &src[whole], len(rest), stride)
	}
}

func join4AVX2(dst []uint32, src []byte, stride int) {
	whole := len(dst) &^ 31
	if whole > 0 {
		join4x256(&dst[0], &src[0], whole, stride)
	}
	join4Generic(dst[whole:], src[whole:], stride)
}

func join8AVX2(dst []uint64, src []byte, stride int) {
	whole := len(dst) &^ 31
	if whole > 0 {
		join8x256(&dst[0], &src[0], whole, stride)
	}
	join8Generic(dst[whole:], src[whole:], stride)
}

// The kernels take whole vectors; what is behind them, the plain path has moved before.

func spread64AVX512(v []uint64, valid []byte, there int) {
	whole := len(valid) &^ 7
	there = spreadRest(v, valid, whole, there)
	if whole > 0 {
		spread64x512(&v[0], &valid[0], whole, there)
	}
}

func spread32AVX512(v []uint32, valid []byte, there int) {
	whole := len(valid) &^ 15
	there = spreadRest(v, valid, whole, there)
	if whole > 0 {
		spread32x512(&v[0], &valid[0], whole, there)
	}
}

func spread64AVX2(v []uint64, valid []byte, there int) {
	whole := len(valid) &^ 3
	there = spreadRest(v, valid, whole, there)
	if whole > 0 {
		spread64x256(&v[0], &valid[0], whole, there)
	}
}

func spread32AVX2(v []uint32, valid []byte, there int) {
	whole := len(valid) &^ 7
	there = spreadRest(v, valid, whole, there)
	if whole > 0 {
		spread32x256(&v[0], &valid[0], whole, there)
	}
}

// spreadRest places the values from element whole on, and returns how many are left for those before.
func spreadRest[T uint32 | uint64](v []T, valid []byte, whole, there int) int {
	for i := len(valid) - 1; i >= whole; i-- {
		is := int(valid[i] & 1)
		there -= is
		v[i] = v[max(there, 0)] & -T(is)
	}
	return max(there, 0)
}
