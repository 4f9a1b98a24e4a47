//go:build !purego

package checksum

import (
	"golang.org/x/sys/cpu"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

const (
	stride = 256  // bytes that the kernel takes at a time
	least  = 1024 // below, it does not pay
)

// folds reports whether the processor has what the kernel takes beside the level AVX512.
var folds = cpu.X86.HasAVX512VPCLMULQDQ

// Folds reports whether kernels that fold as this one does may be used.
func Folds() bool { return folds && simd.Current() >= simd.AVX512 }

// folded returns the checksum after the first done bytes of b.
func folded(sum uint32, b []byte) (_ uint32, done int) {
	if len(b) < least || !Folds() {
		return sum, 0
	}
	var left [16]byte
	done = len(b) &^ (stride - 1)
	fold512(&left, ^sum, &b[0], done)
	return Left(&left), done
}
