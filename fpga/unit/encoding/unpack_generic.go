package encoding

import "encoding/binary"

// The paths of plain Go, and the oracles of the others. bit is below 8.

func unpack32Generic(dst []uint32, src []byte, bit int, width uint) {
	for len(dst) > 0 && bit&7 != 0 {
		dst[0] = uint32(bits(src, bit, width))
		dst, bit = dst[1:], bit+int(width)
	}
	var n int
	switch p := src[min(bit>>3, len(src)):]; {
	case width <= 8:
		n = unpackByLoad(dst, p, width)
	case width <= 16:
		n = unpackByTwo(dst, p, width)
	default:
		n = unpackByEight(dst, p, width)
	}
	bit += n * int(width)
	for i := n; i < len(dst); i++ {
		dst[i] = uint32(bits(src, bit, width))
		bit += int(width)
	}
}

func unpack64Generic(dst []int64, src []byte, bit int, width uint) {
	mask := ^uint64(0) >> (64 - width)
	i := 0
	if width <= 57 {
		for ; i < len(dst) && bit>>3+8 <= len(src); i++ {
			dst[i] = int64(binary.LittleEndian.Uint64(src[bit>>3:]) >> (bit & 7) & mask)
			bit += int(width)
		}
	} else {
		for ; i < len(dst) && bit>>3+9 <= len(src); i++ {
			p, shift := src[bit>>3:][:9], uint(bit&7)
			dst[i] = int64((binary.LittleEndian.Uint64(p)>>shift | uint64(p[8])<<(64-shift)) & mask)
			bit += int(width)
		}
	}
	for ; i < len(dst); i++ {
		dst[i] = int64(bits(src, bit, width))
		bit += int(width)
	}
}

// unpackByLoad reads as many groups of eight values as one load each can hold and returns how many values.
func unpackByLoad(dst []uint32, src []byte, w uint) int {
	mask := uint32(1)<<w - 1
	n := 0
	for len(dst) >= 8 && len(src) >= 8 {
		x := binary.LittleEndian.Uint64(src)
		d := dst[:8:8]
		d[0] = uint32(x) & mask
		d[1] = uint32(x>>(w&63)) & mask
		d[2] = uint32(x>>(2*w&63)) & mask
		d[3] = uint32(x>>(3*w&63)) & mask
		d[4] = uint32(x>>(4*w&63)) & mask
		d[5] = uint32(x>>(5*w&63)) & mask
		d[6] = uint32(x>>(6*w&63)) & mask
		d[7] = uint32(x>>(7*w&63)) & mask
		dst, src = dst[8:], src[w:]
		n += 8
	}
	return n
}

// unpackByTwo takes a load for four values: 4w+4 bits fit 64 as 4w is a multiple of 4 and w <= 15, or w is 16.
func unpackByTwo(dst []uint32, src []byte, w uint) int {
	mask := uint32(1)<<w - 1
	half, shift := int(w>>1), 4*w&7
	n := 0
	for len(dst) >= 8 && len(src) >= half+8 {
		x := binary.LittleEndian.Uint64(src)
		y := binary.LittleEndian.Uint64(src[half:]) >> (shift & 63)
		d := dst[:8:8]
		d[0] = uint32(x) & mask
		d[1] = uint32(x>>(w&63)) & mask
		d[2] = uint32(x>>(2*w&63)) & mask
		d[3] = uint32(x>>(3*w&63)) & mask
		d[4] = uint32(y) & mask
		d[5] = uint32(y>>(w&63)) & mask
		d[6] = uint32(y>>(2*w&63)) & mask
		d[7] = uint32(y>>(3*w&63)) & mask
		dst, src = dst[8:], src[w:]
		n += 8
	}
	return n
}

// unpackByEight takes a load a value.
func unpackByEight(dst []uint32, src []byte, w uint) int {
	mask := uint64(1)<<w - 1
	last := int(7*w>>3) + 8
	n := 0
	for len(dst) >= 8 && len(src) >= last {
		d := dst[:8:8]
		for i := range d {
			bit := uint(i) * w
			d[i] = uint32(binary.LittleEndian.Uint64(src[bit>>3:]) >> (bit & 7) & mask)
		}
		dst, src = dst[8:], src[w:]
		n += 8
	}
	return n
}
