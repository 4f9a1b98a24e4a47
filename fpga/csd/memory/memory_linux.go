package memory

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/hugepages"
)

const mapNoReserve = unix.MAP_NORESERVE

// Zero makes b, a part of memory from [Map], read as zeros, and returns whole pages to the system.
func Zero(b []byte) {
	head, pages, tail := wholePages(b)
	clear(head)
	returnPages(pages)
	clear(tail)
}

// ClearUsed makes b, a part of memory from [Map], read as zeros. Huge pages that are there stay for the next user.
// All other pages are returned to the system, so that unused bytes take up no memory.
func ClearUsed(b []byte) {
	head, pages, tail := wholePages(b)
	clear(head)
	clear(tail)
	present := pageResidence(pages)
	for len(pages) > 0 {
		n, there := firstHugePage(pages, present)
		for n < len(pages) {
			more, same := firstHugePage(pages[n:], present[n/os.Getpagesize():])
			if same != there {
				break
			}
			n += more
		}
		if there {
			clear(pages[:n])
		} else {
			returnPages(pages[:n]) // drops pages that were swapped out, too
		}
		pages, present = pages[n:], present[n/os.Getpagesize():]
	}
}

// addressOf returns the address of b's first byte, only to find page boundaries.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// wholePages splits b into its whole pages and the bytes before and after them.
func wholePages(b []byte) (head, pages, tail []byte) {
	page := os.Getpagesize()
	at := min(len(b), -int(addressOf(b))&(page-1))
	end := at + (len(b)-at)&^(page-1)
	return b[:at], b[at:end], b[end:]
}

// returnPages makes whole pages read as zeros and returns them to the system.
func returnPages(pages []byte) {
	if len(pages) > 0 && unix.Madvise(pages, unix.MADV_DONTNEED) != nil {
		clear(pages)
	}
}

// firstHugePage returns how many bytes of whole pages belong to the huge page at their beginning, and whether the
// system holds memory for all of them.
func firstHugePage(pages, present []byte) (n int, there bool) {
	n = min(len(pages), hugepages.Size-int(addressOf(pages))&(hugepages.Size-1))
	for _, p := range present[:n/os.Getpagesize()] {
		if p&1 == 0 {
			return n, false
		}
	}
	return n, true
}

// pageResidence returns a byte for each page. Its lowest bit is set if the page is in memory (mincore(2)). If the
// system call fails, the bit is set for every page.
func pageResidence(pages []byte) []byte {
	present := make([]byte, len(pages)/os.Getpagesize())
	if len(pages) == 0 {
		return present
	}
	if _, _, e := unix.Syscall(unix.SYS_MINCORE, addressOf(pages), uintptr(len(pages)), //nolint:gosec // as mincore wants
		uintptr(unsafe.Pointer(&present[0]))); e != 0 {
		for i := range present {
			present[i] = 1
		}
	}
	return present
}
