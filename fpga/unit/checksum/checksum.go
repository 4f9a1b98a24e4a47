package checksum

import "hash/crc32"

// Page returns the checksum of b, as a page header has it.
func Page(b []byte) uint32 { return Update(0, b) }

// Update returns the checksum of earlier bytes followed by b; sum is the checksum of the earlier bytes.
func Update(sum uint32, b []byte) uint32 {
	sum, done := folded(sum, b)
	return crc32.Update(sum, crc32.IEEETable, b[done:])
}

// Left returns the checksum of the message that a kernel has left: with the state in it that came before.
func Left(left *[16]byte) uint32 {
	r := uint32(0)
	for _, c := range left {
		r = crc32.IEEETable[byte(r)^c] ^ r>>8
	}
	return ^r
}
