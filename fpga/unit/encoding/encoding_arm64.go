//go:build !purego

package encoding

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	unpack32 = simd.Paths[func(dst []uint32, src []byte, bit int, width uint)]{simd.Generic: unpack32Generic,
		simd.NEON: unpack32NEON}
	unpack64 = simd.Paths[func(dst []int64, src []byte, bit int, width uint)]{simd.Generic: unpack64Generic,
		simd.NEON: unpack64NEON}
	gather64       = simd.Plain(gatherGeneric[uint64])
	gather32       = simd.Plain(gatherGeneric[uint32])
	gatherSigned   = simd.Plain(widenGeneric[int32])
	gatherUnsigned = simd.Plain(widenGeneric[uint32])
	sum            = simd.Plain(sumGeneric)
	join4          = simd.Paths[func(dst []uint32, src []byte, stride int)]{simd.Generic: join4Generic,
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
