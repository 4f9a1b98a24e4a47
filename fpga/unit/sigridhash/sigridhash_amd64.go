//go:build !purego

package sigridhash

import (
	"github.com/millrace/millrace/fpga/unit/checksum"
	"github.com/millrace/millrace/fpga/unit/internal/floormod"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

var (
	hash   = simd.Paths[func(h *Hasher, dst, src []int64)]{hashGeneric, hashAVX2, hashAVX512}
	hash32 = simd.Paths[func(h *Hasher, dst []byte, src []int64)]{hash32Generic, hash32AVX2, hash32AVX512}
)

// The kernels of AVX-512, by the width of the hashes that they store.
type (
	kernel64 = func(dst, src *int64, n int, salt, d uint64, inverse float64)
	kernel32 = func(dst *byte, src *int64, n int, salt, d uint64, inverse float64)
)

func hashAVX512(h *Hasher, dst, src []int64) {
	if len(src) > 0 {
		h.kernel512()(&dst[0], &src[0], len(src), h.salt, h.div.D(), h.div.Inverse())
	}
}

func hash32AVX512(h *Hasher, dst []byte, src []int64) {
	if len(src) > 0 {
		h.kernel32x512()(&dst[0], &src[0], len(src), h.salt, h.div.D(), h.div.Inverse())
	}
}

func (h *Hasher) kernel512() kernel64 {
	switch small := h.div.D() < floormod.WideFrom; {
	case h.shifts() && small:
		return hashShiftsSmall512
	case h.shifts():
		return hashShiftsWide512
	case small:
		return hashSmall512
	}
	return hashWide512
}

func (h *Hasher) kernel32x512() kernel32 {
	switch small := h.div.D() < floormod.WideFrom; {
	case h.shifts() && small:
		return hashShiftsSmallTo32x512
	case h.shifts():
		return hashShiftsWideTo32x512
	case small:
		return hashSmallTo32x512
	}
	return hashWideTo32x512
}

// shifts reports whether the kernels of the variant Shifts are used. They take the divisors whose remainders are int32.
func (h *Hasher) shifts() bool { return simd.CurrentVariant() == simd.Shifts && h.div.D() <= 1<<31 }

func hashAVX2(h *Hasher, dst, src []int64) {
	whole := len(src) &^ 3
	if whole > 0 {
		kernel := hashWide256
		if h.div.D() < floormod.WideFrom {
			kernel = hashSmall256
		}
		kernel(&dst[0], &src[0], whole, h.salt, h.div.D(), h.div.Inverse())
	}
	hashGeneric(h, dst[whole:], src[whole:])
}

func hash32AVX2(h *Hasher, dst []byte, src []int64) {
	whole := len(src) &^ 3
	if whole > 0 {
		kernel := hashWideTo32x256
		if h.div.D() < floormod.WideFrom {
			kernel = hashSmallTo32x256
		}
		kernel(&dst[0], &src[0], whole, h.salt, h.div.D(), h.div.Inverse())
	}
	hash32Generic(h, dst[4*whole:], src[whole:])
}

// hash32Sum does as many ids as the kernel takes.
func hash32Sum(h *Hasher, dst []byte, src []int64, sum uint32) (_ uint32, done int) {
	const least = 128 // ids, below which two passes are as fast
	if len(src) < least || h.div.D() < floormod.WideFrom || !checksum.Folds() {
		return sum, 0
	}
	var left [16]byte
	done = len(src) &^ 31
	if h.shifts() { // direct calls, so that left stays on the stack
		hashShiftsWideTo32Sum512(&left, &dst[0], &src[0], done, h.salt, h.div.D(), h.div.Inverse(), ^sum)
	} else {
		hashWideTo32Sum512(&left, &dst[0], &src[0], done, h.salt, h.div.D(), h.div.Inverse(), ^sum)
	}
	return checksum.Left(&left), done
}
