//go:build !purego

package hextoint

import (
	"unsafe"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

var hex = simd.Paths[func(dst []int64, offsets []uint32, data []byte, valid []byte) error]{hexGeneric, hexAVX2,
	hexAVX512}

// The kernels do blocks of tokens and stop before any that is odd, which the plain path does. For hex512 and hex256 a
// token that has not eight digits is odd. For hexAny512, which needs permutations of bytes, only an error is odd.
// hexAny512 costs twice as much, so it does a few blocks at a time.

func hexAVX512(dst []int64, offsets []uint32, data []byte, valid []byte) error {
	const block, few = 8, 64
	permutes := simd.VBMI()
	for done := 0; done < len(dst); {
		done += hex512(&dst[done], &offsets[done], unsafe.SliceData(data), len(data), flags(valid, done), len(dst)-done)
		if some := min(len(dst)-done, few); permutes && some >= block {
			did := hexAny512(&dst[done], &offsets[done], unsafe.SliceData(data), len(data), flags(valid, done), some)
			done += did
			if did == few {
				continue
			}
		}
		end := min(done+block, len(dst))
		if err := parse(dst, offsets, data, valid, done, end); err != nil {
			return err
		}
		done = end
	}
	return nil
}

func hexAVX2(dst []int64, offsets []uint32, data []byte, valid []byte) error {
	const block = 4
	for done := 0; done < len(dst); {
		done += hex256(&dst[done], &offsets[done], unsafe.SliceData(data), len(data), flags(valid, done), len(dst)-done)
		end := min(done+block, len(dst))
		if err := parse(dst, offsets, data, valid, done, end); err != nil {
			return err
		}
		done = end
	}
	return nil
}

func flags(valid []byte, row int) *byte {
	if valid == nil {
		return nil
	}
	return unsafe.SliceData(valid[row:])
}
