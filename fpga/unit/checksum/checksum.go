package checksum

import "hash/crc32"

// Page returns the checksum of b, as a page header has it.
func Page(b []byte) uint32 {
	sum, done := folded(b)
	return crc32.Update(sum, crc32.IEEETable, b[done:])
}
