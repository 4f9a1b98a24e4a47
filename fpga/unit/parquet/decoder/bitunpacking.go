package decoder

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// Bit-packed values lie least significant bit first. The functions here read short ones, levels, from src beginning at
// bit number bit; the caller has checked that the bits are there, but loads of eight bytes may pass the last value
// within src. Package encoding reads the others.

// unpackOne reads a value of w <= 32 bits.
func unpackOne(src []byte, bit int, w uint) uint32 {
	p := bit >> 3
	if p+8 <= len(src) {
		return uint32(binary.LittleEndian.Uint64(src[p:]) >> (uint(bit) & 7) & (1<<w - 1))
	}
	var x uint64
	for i, c := range src[min(p, len(src)):] {
		x |= uint64(c) << (8 * i)
	}
	return uint32(x >> (uint(bit) & 7) & (1<<w - 1))
}

// unpackLevels reads len(dst) values of w <= 6 bits.
func unpackLevels(dst, src []byte, bit int, w uint) {
	for len(dst) > 0 && bit&7 != 0 {
		dst[0] = byte(unpackOne(src, bit, w))
		dst, bit = dst[1:], bit+int(w)
	}
	n := 0
	if w == 1 {
		n = spreadBits(dst, src[min(bit>>3, len(src)):])
	} else {
		mask := byte(1)<<w - 1
		p := src[min(bit>>3, len(src)):]
		for len(dst)-n >= 8 && len(p) >= 8 {
			x := binary.LittleEndian.Uint64(p)
			d := dst[n : n+8 : n+8]
			d[0] = byte(x) & mask
			d[1] = byte(x>>(w&63)) & mask
			d[2] = byte(x>>(2*w&63)) & mask
			d[3] = byte(x>>(3*w&63)) & mask
			d[4] = byte(x>>(4*w&63)) & mask
			d[5] = byte(x>>(5*w&63)) & mask
			d[6] = byte(x>>(6*w&63)) & mask
			d[7] = byte(x>>(7*w&63)) & mask
			p = p[w:]
			n += 8
		}
	}
	bit += n * int(w)
	for i := n; i < len(dst); i++ {
		dst[i] = byte(unpackOne(src, bit, w))
		bit += int(w)
	}
}

// spreadBits spreads the bits of src's bytes over bytes of 0 and 1: as many whole groups of eight as fit dst. It
// returns how many bits.
func spreadBits(dst, src []byte) int {
	const (
		ones  = 0x0101010101010101
		pick  = 0x8040201008040201 // bit i of byte i
		lower = 0x7f7f7f7f7f7f7f7f
	)
	n := min(len(dst)/8, len(src))
	src = src[:n]
	dst = dst[:8*n]
	for _, c := range src {
		x := uint64(c) * ones & pick
		// Byte i is now 0 or 1<<i: adding 7f carries into the top bit unless it is 0, and 1<<7 has it already.
		x = (x&lower + lower | x) >> 7 & ones
		binary.LittleEndian.PutUint64(dst, x)
		dst = dst[8:]
	}
	return 8 * n
}

// countOnesFrom counts the ones among n bits from a bit on.
func countOnesFrom(src []byte, bit, n int) int {
	c := 0
	for ; n > 0 && bit&7 != 0; n, bit = n-1, bit+1 {
		c += int(src[bit>>3] >> (bit & 7) & 1)
	}
	for ; n >= 64; n, bit = n-64, bit+64 {
		c += bits.OnesCount64(binary.LittleEndian.Uint64(src[bit>>3:]))
	}
	for ; n >= 8; n, bit = n-8, bit+8 {
		c += bits.OnesCount8(src[bit>>3])
	}
	if n > 0 {
		c += bits.OnesCount8(src[bit>>3] & (1<<n - 1))
	}
	return c
}

// countOneBytes counts the bytes of v that are 1. The others are 0.
func countOneBytes(v []byte) int {
	n := 0
	for ; len(v) >= 8; v = v[8:] {
		n += int(binary.LittleEndian.Uint64(v) * 0x0101010101010101 >> 56)
	}
	for _, c := range v {
		n += int(c)
	}
	return n
}

// fillSlice sets every element of v to c.
func fillSlice[T any](v []T, c T) {
	for i := range v {
		v[i] = c
	}
}

// fixedWidth is what PLAIN values of fixed width are in memory.
type fixedWidth interface {
	~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

// bytesOf returns the memory of v as bytes, which on a little-endian machine is v in PLAIN.
func bytesOf[T fixedWidth](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}

// alignedValues returns the memory of b as values, or false if b is not aligned for them. It leaves out bytes at the
// end that make no whole value.
func alignedValues[T fixedWidth](b []byte) ([]T, bool) {
	size := int(unsafe.Sizeof(*new(T)))
	n := len(b) / size
	if n == 0 {
		return nil, true
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(p)%uintptr(size) != 0 {
		return nil, false
	}
	return unsafe.Slice((*T)(p), n), true
}

// fillBytes sets every byte of v to c, faster than fillSlice: each copy doubles what is done.
func fillBytes(v []byte, c byte) {
	if len(v) < 32 {
		fillSlice(v, c)
		return
	}
	fillSlice(v[:16], c)
	for n := 16; n < len(v); n *= 2 {
		copy(v[n:], v[:n])
	}
}

// sameBits returns the memory of v as unsigned integers of the same size.
func sameBits[U uint32 | uint64, T fixedWidth](v []T) []U {
	return unsafe.Slice((*U)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}
