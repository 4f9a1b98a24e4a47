//go:build !linux

package cpu

// newMemory returns zeroed memory.
func newMemory(size uint64) []byte { return make([]byte, size) }
