package cs

import (
	"encoding/binary"
	"math/bits"
)

// MaxRanges is the most memory ranges that a program is given.
const MaxRanges = 8

// Range is Len bytes of subsystem local memory from byte address Addr. A range of no bytes is allowed: it says that the
// program needs none in that place.
type Range struct{ Addr, Len uint64 }

// Ends returns the address after the range, and false where the sum does not fit 64 bits.
func (r Range) Ends() (uint64, bool) {
	end, carry := bits.Add64(r.Addr, r.Len, 0)
	return end, carry == 0
}

// Overlaps reports whether the two ranges share a byte. Neither may run past 2^64.
func (r Range) Overlaps(o Range) bool {
	return r.Len > 0 && o.Len > 0 && r.Addr < o.Addr+o.Len && o.Addr < r.Addr+r.Len
}

// Contains reports whether every byte of o lies in the range. Neither may run past 2^64.
func (r Range) Contains(o Range) bool { return o.Addr >= r.Addr && o.Addr+o.Len <= r.Addr+r.Len }

// Copy moves NLB logical blocks (a count, not 0's based) of namespace NSID from block SLBA on to byte Dest of subsystem
// local memory.
type Copy struct {
	NSID uint32
	NLB  uint32
	SLBA uint64
	Dest uint64
}

func le16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func put16(b []byte, v uint16) { binary.LittleEndian.PutUint16(b, v) }
func put32(b []byte, v uint32) { binary.LittleEndian.PutUint32(b, v) }
func put64(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }
