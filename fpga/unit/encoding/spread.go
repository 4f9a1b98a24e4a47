package encoding

import "unsafe"

// Spread moves the first there values of v, in order, to where valid has a 1, and sets the others, where it has a 0, to
// 0. v and valid have one length, and valid holds there ones and else zeros.
func Spread[T Word](v []T, valid []byte, there int) {
	v = v[:len(valid)]
	if unsafe.Sizeof(*new(T)) == 8 {
		spread64.Pick()(words[uint64](v), valid, there)
		return
	}
	spread32.Pick()(words[uint32](v), valid, there)
}

// spreadGeneric works from the end, where no value is overwritten before it has moved. The places of nulls are hard
// to predict, so the code does not branch on them.
func spreadGeneric[T uint32 | uint64](v []T, valid []byte, there int) {
	v = v[:len(valid)]
	for i := len(valid) - 1; i >= 0; i-- {
		if there <= 0 {
			clear(v[:i+1])
			return
		}
		if there == i+1 {
			return // the rest is in its place
		}
		is := valid[i] & 1
		v[i] = v[there-1] & -T(is)
		there -= int(is)
	}
}
