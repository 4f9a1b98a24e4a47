//go:build !purego

package sigridhash

import (
	"github.com/millrace/millrace/fpga/unit/internal/floormod"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

var (
	hash   = simd.Paths[func(h *Hasher, dst, src []int64)]{simd.Generic: hashGeneric, simd.NEON: hashNEON}
	hash32 = simd.Paths[func(h *Hasher, dst []byte, src []int64)]{simd.Generic: hash32Generic,
		simd.NEON: hash32NEON}
)

// idsNEON returns how many of n ids the kernels of NEON hash: whole turns of their loops. They take the divisors whose
// remainders are int32.
func (h *Hasher) idsNEON(n int) int {
	if h.div.D() > 1<<31 {
		return 0
	}
	return n / 14 * 14
}

func hashNEON(h *Hasher, dst, src []int64) {
	whole := h.idsNEON(len(src))
	if whole > 0 {
		kernel := hashWideNEON
		if h.div.D() < floormod.WideFrom {
			kernel = hashSmallNEON
		}
		m, shift := h.div.Reciprocal()
		kernel(&dst[0], &src[0], whole, h.salt, h.div.D(), m, shift, h.div.Inverse())
	}
	hashGeneric(h, dst[whole:], src[whole:])
}

func hash32NEON(h *Hasher, dst []byte, src []int64) {
	whole := h.idsNEON(len(src))
	if whole > 0 {
		kernel := hashWideTo32NEON
		if h.div.D() < floormod.WideFrom {
			kernel = hashSmallTo32NEON
		}
		m, shift := h.div.Reciprocal()
		kernel(&dst[0], &src[0], whole, h.salt, h.div.D(), m, shift, h.div.Inverse())
	}
	hash32Generic(h, dst[4*whole:], src[whole:])
}

func hash32Sum(_ *Hasher, _ []byte, _ []int64, sum uint32) (uint32, int) { return sum, 0 }
