//go:build (!amd64 && !arm64) || purego

package checksum

func folded(sum uint32, _ []byte) (uint32, int) { return sum, 0 }

// Folds reports whether the processor has what folding kernels need beside AVX-512.
func Folds() bool { return false }
