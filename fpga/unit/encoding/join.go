package encoding

// Join4 sets dst[i] to the four bytes src[i], src[i+stride], ..., the first the least significant, for every i of dst.
// stride is at least 0, and src has 3*stride + len(dst) bytes.
func Join4(dst []uint32, src []byte, stride int) {
	if len(dst) > 0 {
		join4.Pick()(dst, src[:3*stride+len(dst)], stride)
	}
}

// Join8 is Join4 for values of eight bytes; src has 7*stride + len(dst) bytes.
func Join8(dst []uint64, src []byte, stride int) {
	if len(dst) > 0 {
		join8.Pick()(dst, src[:7*stride+len(dst)], stride)
	}
}

func join4Generic(dst []uint32, src []byte, stride int) {
	n := len(dst)
	b0, b1, b2, b3 := src[:n], src[stride:][:n], src[2*stride:][:n], src[3*stride:][:n]
	for i := range dst {
		dst[i] = uint32(b0[i]) | uint32(b1[i])<<8 | uint32(b2[i])<<16 | uint32(b3[i])<<24
	}
}

func join8Generic(dst []uint64, src []byte, stride int) {
	clear(dst)
	for k := range 8 {
		for i, c := range src[k*stride:][:len(dst)] {
			dst[i] |= uint64(c) << (8 * k)
		}
	}
}
