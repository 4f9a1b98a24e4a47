//go:build !purego

package encoding

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	unpack32 = simd.Paths[func(dst []uint32, src []byte, bit int, width uint)]{simd.Generic: unpack32Generic,
		simd.NEON: unpack32NEON}
	unpack64 = simd.Paths[func(dst []int64, src []byte, bit int, width uint)]{simd.Generic: unpack64Generic,
		simd.NEON: unpack64NEON}
	gather64 = simd.Paths[func(dst, dict []uint64, idx []uint32) int]{simd.Generic: gatherGeneric[uint64],
		simd.NEON: gather64OfNEON}
	gather32 = simd.Paths[func(dst, dict []uint32, idx []uint32) int]{simd.Generic: gatherGeneric[uint32],
		simd.NEON: gather32OfNEON}
	gatherSigned = simd.Paths[func(dst []int64, dict []int32, idx []uint32) int]{simd.Generic: widenGeneric[int32],
		simd.NEON: gatherSignedOfNEON}
	gatherUnsigned = simd.Paths[func(dst []int64, dict []uint32, idx []uint32) int]{simd.Generic: widenGeneric[uint32],
		simd.NEON: gatherUnsignedOfNEON}
	sum   = simd.Plain(sumGeneric)
	join4 = simd.Paths[func(dst []uint32, src []byte, stride int)]{simd.Generic: join4Generic,
		simd.NEON: join4OfNEON}
	join8 = simd.Paths[func(dst []uint64, src []byte, stride int)]{simd.Generic: join8Generic,
		simd.NEON: join8OfNEON}
	spread64 = simd.Plain(spreadGeneric[uint64])
	spread32 = simd.Plain(spreadGeneric[uint32])
)

// The most bits that a value can have where it is taken from four bytes, or from eight, at any bit of the first.
const narrowNEON, widestNEON = 25, 57

func unpack32NEON(dst []uint32, src []byte, bit int, width uint) {
	done := 0
	switch {
	case len(dst) == 0 || len(src) == 0:
	case width <= narrowNEON:
		done = unpackNarrowNEON(&dst[0], &src[0], len(dst), bit, int(width), len(src))
	default:
		done = unpackWideNEON(&dst[0], &src[0], len(dst), bit, int(width), len(src))
	}
	unpack32Generic(dst[done:], src[min(done/8*int(width), len(src)):], bit, width)
}

func unpack64NEON(dst []int64, src []byte, bit int, width uint) {
	done := 0
	if len(dst) > 0 && len(src) > 0 && width <= widestNEON {
		done = unpackWidestNEON(&dst[0], &src[0], len(dst), bit, int(width), len(src))
	}
	unpack64Generic(dst[done:], src[min(done/8*int(width), len(src)):], bit, width)
}

func join4OfNEON(dst []uint32, src []byte, stride int) {
	whole := len(dst) &^ 15
	if whole > 0 {
		join4NEON(&dst[0], &src[0], whole, stride)
	}
	join4Generic(dst[whole:], src[whole:], stride)
}

func join8OfNEON(dst []uint64, src []byte, stride int) {
	whole := len(dst) &^ 15
	if whole > 0 {
		join8NEON(&dst[0], &src[0], whole, stride)
	}
	join8Generic(dst[whole:], src[whole:], stride)
}

func gather64OfNEON(dst, dict []uint64, idx []uint32) int {
	return lookUp(gather64NEON, gatherGeneric[uint64], dst, dict, idx)
}

func gather32OfNEON(dst, dict []uint32, idx []uint32) int {
	return lookUp(gather32NEON, gatherGeneric[uint32], dst, dict, idx)
}

func gatherSignedOfNEON(dst []int64, dict []int32, idx []uint32) int {
	return lookUp(gatherSignedNEON, widenGeneric[int32], dst, dict, idx)
}

func gatherUnsignedOfNEON(dst []int64, dict []uint32, idx []uint32) int {
	return lookUp(gatherUnsignedNEON, widenGeneric[uint32], dst, dict, idx)
}
