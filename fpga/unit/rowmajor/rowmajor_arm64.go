//go:build !purego

package rowmajor

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	writeRows = simd.Paths[func(dst []byte, stride int, t *Tile, columns, from, rows int)]{
		simd.Generic: writeGeneric, simd.NEON: writeNEON}
	writeBFloatRows = simd.Paths[func(dst []byte, stride int, t *Tile, columns, from, rows int)]{
		simd.Generic: writeBFloatGeneric, simd.NEON: writeBFloatNEON}
)

// group is how many rows, and how many columns, the kernels transpose at a time.
const group = 4

func writeNEON(dst []byte, stride int, t *Tile, columns, from, rows int) {
	if whole := (rows - from) &^ (group - 1); whole > 0 && columns >= group {
		rowsNEON(&dst[from*stride], stride, &t[from], whole, columns)
		from += whole
	}
	writeGeneric(dst, stride, t, columns, from, rows)
}

func writeBFloatNEON(dst []byte, stride int, t *Tile, columns, from, rows int) {
	if whole := (rows - from) &^ (group - 1); whole > 0 && columns >= group {
		rowsBFloatNEON(&dst[from*stride], stride, &t[from], whole, columns)
		from += whole
	}
	writeBFloatGeneric(dst, stride, t, columns, from, rows)
}
