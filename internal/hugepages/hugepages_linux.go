package hugepages

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Size is the size of a huge page in bytes, on amd64, and on arm64 with pages of 4 KiB.
const Size = 2 << 20

// Least is the least memory that Make asks huge pages for. Less would hold a few, and be rounded up by one.
const Least = 32 << 20

// Make returns memory of some bytes, which are 0. From Least on it begins at a huge page, and the kernel is asked to
// map it in huge pages.
func Make(size uint64) []byte {
	if size < Least {
		return make([]byte, size)
	}
	all := uncleared(size + Size)
	begin := -uint64(uintptr(unsafe.Pointer(&all[0]))) % Size
	memory := all[begin : begin+size : begin+size]
	forget(memory)
	Advise(memory[:size/Size*Size])
	return memory
}

// forget makes memory that begins at a page 0. The kernel drops the pages that the process wrote before, and maps empty
// ones when they are touched, so that memory of which little is used costs little.
func forget(memory []byte) {
	page := os.Getpagesize()
	whole := len(memory) / page * page
	if unix.Madvise(memory[:whole], unix.MADV_DONTNEED) != nil {
		whole = 0
	}
	clear(memory[whole:])
}

// Advise asks the kernel to map the huge pages that lie whole in memory as such. Memory begins at a page. A huge
// page takes room once a byte of it is written.
func Advise(memory []byte) {
	if len(memory) >= Size {
		_ = unix.Madvise(memory, unix.MADV_HUGEPAGE) // without huge pages the memory is as good
	}
}
