//go:build !purego

package hextoint

import (
	"unsafe"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

var hex = simd.Paths[func(dst []int64, offsets []uint32, data []byte, valid []byte) error]{hexGeneric, hexAVX2, hexAVX512}

// The kernels do blocks of tokens of eight digits each and stop before any other, which the plain path does.

func hexAVX512(dst []int64, offsets []uint32, data []byte, valid []byte) error {
	const block = 8
	for done := 0; done < len(dst); {
		done += hex512(&dst[done], &offsets[done], unsafe.SliceData(data), len(data), flags(valid, done), len(dst)-done)
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
