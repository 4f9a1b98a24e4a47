package encoding

import "unsafe"

// Word is a value of four or eight bytes.
type Word interface {
	~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

// Gather sets dst[i] to dict[idx[i]] for every i of idx, up to the first idx[i] that is not below len(dict), and
// returns how many that are: len(idx) if all are good. dst must be at least as long as idx; the elements of dst
// behind that number may hold any value.
func Gather[T Word](dst, dict []T, idx []uint32) (done int) {
	dst = dst[:len(idx)]
	if unsafe.Sizeof(*new(T)) == 8 {
		return gather64.Pick()(words[uint64](dst), words[uint64](dict), idx)
	}
	return gather32.Pick()(words[uint32](dst), words[uint32](dict), idx)
}

// GatherNarrow is Gather for 64-bit values of which the dictionary keeps the lower 32 bits: as int32, they are
// sign-extended, as uint32, zero-extended.
func GatherNarrow[T int32 | uint32](dst []int64, dict []T, idx []uint32) (done int) {
	dst = dst[:len(idx)]
	if ^T(0) < 0 {
		return gatherSigned.Pick()(dst, words[int32](dict), idx)
	}
	return gatherUnsigned.Pick()(dst, words[uint32](dict), idx)
}

// words is v as values of the same size.
func words[U, T Word](v []T) []U {
	return unsafe.Slice((*U)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

func gatherGeneric[T Word](dst, dict []T, idx []uint32) int {
	dst = dst[:len(idx)]
	for i, x := range idx {
		if uint(x) >= uint(len(dict)) {
			return i
		}
		dst[i] = dict[x]
	}
	return len(idx)
}

func widenGeneric[T int32 | uint32](dst []int64, dict []T, idx []uint32) int {
	dst = dst[:len(idx)]
	for i, x := range idx {
		if uint(x) >= uint(len(dict)) {
			return i
		}
		dst[i] = int64(dict[x])
	}
	return len(idx)
}
