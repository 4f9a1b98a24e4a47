//go:build (!amd64 && !arm64) || purego

package encoding

import "github.com/millrace/millrace/fpga/unit/internal/simd"

func wholeVectors([]uint32, []int64, []byte) (simd.Level, map[int]func(width int) int) {
	return simd.Generic, nil
}
