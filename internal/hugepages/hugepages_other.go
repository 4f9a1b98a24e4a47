//go:build !linux

package hugepages

// Least is the least memory that Make asks huge pages for, on Linux.
const Least = 32 << 20

// Make returns zeroed memory of some bytes.
func Make(size uint64) []byte { return make([]byte, size) }

// Advise does nothing.
func Advise([]byte) {}
