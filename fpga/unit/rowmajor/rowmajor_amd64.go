//go:build !purego

package rowmajor

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	writeRows = simd.Paths[func(dst []byte, stride int, t *Tile, columns, from, rows int)]{writeGeneric, writeAVX2,
		writeAVX512}
	writeBFloatRows = simd.Paths[func(dst []byte, stride int, t *Tile, columns, from, rows int)]{writeBFloatGeneric,
		writeBFloatAVX2, writeBFloatAVX512}
)

func writeAVX2(dst []byte, stride int, t *Tile, columns, from, rows int) {
	if whole := (rows - from) &^ 3; whole > 0 {
		rows256(&dst[from*stride], stride, &t[from], whole, columns)
		from += whole
	}
	writeGeneric(dst, stride, t, columns, from, rows)
}

func writeBFloatAVX2(dst []byte, stride int, t *Tile, columns, from, rows int) {
	if whole := (rows - from) &^ 3; whole > 0 {
		rowsBFloat256(&dst[from*stride], stride, &t[from], whole, columns)
		from += whole
	}
	writeBFloatGeneric(dst, stride, t, columns, from, rows)
}

func writeAVX512(dst []byte, stride int, t *Tile, columns, from, rows int) {
	if whole := (rows - from) &^ 15; whole > 0 {
		rows512(&dst[from*stride], stride, &t[from], whole, columns)
		from += whole
	}
	writeGeneric(dst, stride, t, columns, from, rows)
}

func writeBFloatAVX512(dst []byte, stride int, t *Tile, columns, from, rows int) {
	if whole := (rows - from) &^ 15; whole > 0 {
		rowsBFloat512(&dst[from*stride], stride, &t[from], whole, columns)
		from += whole
	}
	writeBFloatGeneric(dst, stride, t, columns, from, rows)
}
