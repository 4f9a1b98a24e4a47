//go:build !purego

package checksum

import (
	"hash/crc32"

	"golang.org/x/sys/cpu"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

const (
	stride = 256  // bytes that the kernel takes at a time
	least  = 1024 // below, it does not pay
)

// folds tells whether the processor has what the kernel takes beside the level AVX512.
var folds = cpu.X86.HasAVX512VPCLMULQDQ

// folded returns the checksum of the first done bytes of b.
func folded(b []byte) (sum uint32, done int) {
	if len(b) < least || !folds || simd.Current() < simd.AVX512 {
		return 0, 0
	}
	var left [16]byte
	done = len(b) &^ (stride - 1)
	fold512(&left, ^uint32(0), &b[0], done)
	r := uint32(0)
	for _, c := range left {
		r = crc32.IEEETable[byte(r)^c] ^ r>>8
	}
	return ^r, done
}
