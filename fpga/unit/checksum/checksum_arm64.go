//go:build !purego

package checksum

import (
	"golang.org/x/sys/cpu"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

const (
	stride = 128 // bytes that the kernel takes at a time
	least  = 512 // below, hash/crc32 has less to set up
)

// folds reports whether the processor has PMULL, the carry-less product of 64-bit words. It is a feature of its own.
var folds = cpu.ARM64.HasPMULL

// Folds reports whether kernels that fold as this one does may be used.
func Folds() bool { return folds && simd.Current() == simd.NEON }

// folded returns the checksum after the first done bytes of b.
func folded(sum uint32, b []byte) (_ uint32, done int) {
	if len(b) < least || !Folds() {
		return sum, 0
	}
	var left [16]byte
	done = len(b) &^ (stride - 1)
	foldNEON(&left, ^sum, &b[0], done)
	return Left(&left), done
}
