package fillnull

import (
	"math"
	"unsafe"
)

// Int64 sets v[i] to fill wherever valid[i] is 0. A nil valid means that nothing is null.
func Int64(v []int64, valid []byte, fill int64) {
	words(unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(v))), len(v)), valid, uint64(fill))
}

// Float32 sets v[i] to fill wherever valid[i] is 0; the bits of every other value are kept.
func Float32(v []float32, valid []byte, fill float32) {
	if valid != nil {
		fill32.Pick()(unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(v))), len(v)), valid[:len(v)],
			math.Float32bits(fill))
	}
}

// Float64 sets v[i] to fill wherever valid[i] is 0; the bits of every other value are kept.
func Float64(v []float64, valid []byte, fill float64) {
	words(unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(v))), len(v)), valid, math.Float64bits(fill))
}

// words fills 64 bits a value: no path asks what they mean.
func words(v []uint64, valid []byte, fill uint64) {
	if valid != nil {
		fill64.Pick()(v, valid[:len(v)], fill)
	}
}
