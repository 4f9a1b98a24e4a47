package hugepages

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Size is the size of a huge page in bytes, on amd64, and on arm64 with pages of 4 KiB.
const Size = 2 << 20

// Least is the least memory that Make asks huge pages for. Less would hold a few, and be rounded up by one.
const Least = 32 << 20

// Make returns memory of some bytes, whose contents are arbitrary. From Least on it begins at a huge page, and the
// kernel is asked to map it in huge pages.
func Make(size uint64) []byte {
	if size < Least {
		return uncleared(size)
	}
	all := uncleared(size + Size)
	begin := -uint64(uintptr(unsafe.Pointer(&all[0]))) % Size
	memory := all[begin : begin+size : begin+size]
	Advise(memory[:size/Size*Size])
	return memory
}

// Advise asks the kernel to map the huge pages that lie whole in memory as such. Memory begins at a page. A huge
// page takes room once a byte of it is written.
func Advise(memory []byte) {
	if len(memory) >= Size {
		_ = unix.Madvise(memory, unix.MADV_HUGEPAGE) // without huge pages the memory is as good
	}
}
