package encoding

import "encoding/binary"

// Unpack32 sets dst[i] to the width bits of src from bit number bit + i*width on, least significant bit first, for
// every i of dst. width is 0 to 32, bit not negative. Bits past src's end are 0.
func Unpack32(dst []uint32, src []byte, bit int, width uint) {
	if width == 0 {
		clear(dst)
		return
	}
	src, bit = from(src, bit)
	unpack32.Pick()(dst, src, bit, width)
}

// Unpack64 is Unpack32 for widths of 0 to 64 bits.
func Unpack64(dst []int64, src []byte, bit int, width uint) {
	if width == 0 {
		clear(dst)
		return
	}
	src, bit = from(src, bit)
	unpack64.Pick()(dst, src, bit, width)
}

// from returns src from the byte that has the bit, and the bit's number in it.
func from(src []byte, bit int) ([]byte, int) {
	return src[min(bit>>3, len(src)):], bit & 7
}

// bits returns width of src's bits from bit on. They lie within eight bytes, or src ends before they do.
func bits(src []byte, bit int, width uint) uint64 {
	p, shift := bit>>3, uint(bit&7)
	mask := ^uint64(0) >> (64 - width)
	if p+8 <= len(src) {
		return binary.LittleEndian.Uint64(src[p:]) >> shift & mask
	}
	var x uint64
	for i, c := range src[min(p, len(src)):] {
		x |= uint64(c) << (8 * i)
	}
	return x >> shift & mask
}
