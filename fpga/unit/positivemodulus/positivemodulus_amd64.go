//go:build !purego

package positivemodulus

import (
	"github.com/millrace/millrace/fpga/unit/internal/floormod"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

var mod = simd.Paths[func(m *Modulus, dst, src []int64)]{modGeneric, modAVX2, modAVX512}

func modAVX512(m *Modulus, dst, src []int64) {
	if len(src) == 0 {
		return
	}
	if m.bits {
		modMask512(&dst[0], &src[0], len(src), uint64(m.mask))
		return
	}
	kernel := modWide512
	if m.div.D() < floormod.WideFrom {
		kernel = modSmall512
	}
	kernel(&dst[0], &src[0], len(src), m.div.D(), m.div.Inverse())
}

func modAVX2(m *Modulus, dst, src []int64) {
	whole := len(src) &^ 3
	switch {
	case whole == 0:
	case m.bits:
		modMask256(&dst[0], &src[0], whole, uint64(m.mask))
	default:
		kernel := modWide256
		if m.div.D() < floormod.WideFrom {
			kernel = modSmall256
		}
		kernel(&dst[0], &src[0], whole, m.div.D(), m.div.Inverse())
	}
	modGeneric(m, dst[whole:], src[whole:])
}
