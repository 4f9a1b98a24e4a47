package cpu

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	hugePage = 2 << 20 // bytes, on amd64 and on arm64 with pages of 4 KiB
	// leastHuge is the least memory that asks for huge pages. Less would hold a few, and be rounded up by one.
	leastHuge = 32 << 20
)

// newMemory returns zeroed memory, and asks the kernel to map it in huge pages. A slice looks values up all over the
// dictionaries of its columns, which together are larger than what the processor keeps of the translation of pages of 4
// KiB. Where the kernel has no huge pages the memory is as good.
func newMemory(size uint64) []byte {
	if size < leastHuge {
		return make([]byte, size)
	}
	all := make([]byte, size+hugePage)
	begin := -uint64(uintptr(unsafe.Pointer(&all[0]))) % hugePage
	memory := all[begin : begin+size : begin+size]
	_ = unix.Madvise(memory[:size/hugePage*hugePage], unix.MADV_HUGEPAGE)
	return memory
}
