package zeroextend

import "encoding/binary"

// The paths of plain Go, and the oracles of the others.

func extendGeneric(v []int64) {
	for i, x := range v {
		v[i] = int64(uint32(x))
	}
}

func narrowGeneric(dst []byte, src []int64) (fit int) {
	for i, x := range src {
		if int64(int32(x)) != x {
			return i
		}
		binary.LittleEndian.PutUint32(dst[4*i:], uint32(x))
	}
	return len(src)
}
