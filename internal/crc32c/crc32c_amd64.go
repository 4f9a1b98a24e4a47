//go:build !purego

package crc32c

import (
	"os"
	"slices"

	"golang.org/x/sys/cpu"
)

// wide says that the kernel is used.
var wide = cpu.X86.HasSSE42 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ && allowed(os.Getenv("MILLRACE_CPU"))

// allowed reports whether a value of the variable lets kernels use AVX-512; the last two select variants of kernels.
func allowed(level string) bool {
	return slices.Contains([]string{"", "avx512", "avx512-products", "avx512-shifts"}, level)
}

const (
	stride = 256  // bytes that the kernel takes at a time
	least  = 1024 // below, it does not pay
)

// fold takes as much of b as the kernel does.
func fold(crc uint32, b []byte) (sum uint32, done int) {
	if len(b) < least {
		return crc, 0
	}
	done = len(b) &^ (stride - 1)
	return ^fold512(^crc, &b[0], done), done
}
