//go:build !purego

package positivemodulus

import (
	"github.com/millrace/millrace/fpga/unit/internal/floormod"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

var mod = simd.Paths[func(m *Modulus, dst, src []int64)]{simd.Generic: modGeneric, simd.NEON: modNEON}

// modNEON leaves powers of two, and divisors above 2^31, to the plain path.
func modNEON(m *Modulus, dst, src []int64) {
	whole := len(src) &^ 7
	if m.bits || m.div.D() > 1<<31 {
		whole = 0
	}
	if whole > 0 {
		kernel := modWideNEON
		if m.div.D() < floormod.WideFrom {
			kernel = modSmallNEON
		}
		kernel(&dst[0], &src[0], whole, m.div.D(), m.div.Inverse())
	}
	modGeneric(m, dst[whole:], src[whole:])
}
