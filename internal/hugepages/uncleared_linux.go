package hugepages

import (
	"strings"
	"unsafe"
)

// uncleared returns memory of some bytes, whose contents are arbitrary: its caller makes them 0. The builder of strings
// is the only allocator of the standard library that does not clear memory which the process used before. Clearing
// would touch every page, and hundreds of megabytes of which few are used would all take up room.
func uncleared(size uint64) []byte {
	if size == 0 {
		return nil
	}
	var b strings.Builder
	b.Grow(int(size))
	b.WriteByte(0) // an empty string need not have an address
	return unsafe.Slice(unsafe.StringData(b.String()), size)
}
