package convert

import (
	"encoding/binary"
	"math"
)

// The paths of plain Go, and the oracles of the others.

func convertGeneric[D float32 | float64, S int64 | float32](dst []D, src []S) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = D(x)
	}
}

func narrowGeneric(dst []float32, src []float64) {
	dst = dst[:len(src)]
	for i, x := range src {
		if x != x {
			dst[i] = math.Float32frombits(nan)
			continue
		}
		dst[i] = float32(x)
	}
}

func signedGeneric(dst []int64, src []byte) {
	for len(dst) >= 4 && len(src) >= 16 {
		d, s := dst[:4:4], src[:16:16]
		d[0] = int64(int32(binary.LittleEndian.Uint32(s[0:])))
		d[1] = int64(int32(binary.LittleEndian.Uint32(s[4:])))
		d[2] = int64(int32(binary.LittleEndian.Uint32(s[8:])))
		d[3] = int64(int32(binary.LittleEndian.Uint32(s[12:])))
		dst, src = dst[4:], src[16:]
	}
	for i := range dst {
		dst[i] = int64(int32(binary.LittleEndian.Uint32(src[4*i:])))
	}
}

func unsignedGeneric(dst []int64, src []byte) {
	for len(dst) >= 4 && len(src) >= 16 {
		d, s := dst[:4:4], src[:16:16]
		d[0] = int64(binary.LittleEndian.Uint32(s[0:]))
		d[1] = int64(binary.LittleEndian.Uint32(s[4:]))
		d[2] = int64(binary.LittleEndian.Uint32(s[8:]))
		d[3] = int64(binary.LittleEndian.Uint32(s[12:]))
		dst, src = dst[4:], src[16:]
	}
	for i := range dst {
		dst[i] = int64(binary.LittleEndian.Uint32(src[4*i:]))
	}
}
