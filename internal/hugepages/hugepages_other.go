//go:build !linux

package hugepages

// Least is the least memory that Make asks huge pages for, on Linux.
const Least = 32 << 20

// Make returns memory of some bytes, which are 0.
func Make(size uint64) []byte { return make([]byte, size) }

// Advise does nothing.
func Advise([]byte) {}
