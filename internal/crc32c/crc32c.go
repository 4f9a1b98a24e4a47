package crc32c

import "hash/crc32"

var table = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the checksum of b.
func Checksum(b []byte) uint32 { return Update(0, b) }

// Update returns the checksum of some bytes followed by b, where crc is the checksum of those bytes.
func Update(crc uint32, b []byte) uint32 {
	done := 0
	if wide {
		crc, done = fold(crc, b)
	}
	return crc32.Update(crc, table, b[done:])
}
