package hugepages

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Size is the size of a huge page in bytes, on amd64, and on arm64 with pages of 4 KiB.
const Size = 2 << 20

// Least is the least memory that Make asks huge pages for. Less would hold a few, and be rounded up by one.
const Least = 32 << 20

// Make returns zeroed memory of some bytes. From Least on it begins at a huge page, and the kernel is asked to map it
// in huge pages.
func Make(size uint64) []byte {
	if size < Least {
		return make([]byte, size)
	}
	all := make([]byte, size+Size)
	begin := -uint64(uintptr(unsafe.Pointer(&all[0]))) % Size
	memory := all[begin : begin+size : begin+size]
	_ = unix.Madvise(memory[:size/Size*Size], unix.MADV_HUGEPAGE)
	return memory
}
