//go:build !purego

package rowmajor

import "github.com/millrace/millrace/fpga/unit/internal/simd"

// With AVX2 eight rows of eight columns at a time gain nothing over plain Go, whose stores fill lines too.
var (
	writeRows = simd.Paths[func(dst []byte, stride int, t *Tile, columns, from, rows int)]{writeGeneric, writeGeneric,
		writeAVX512}
	writeBFloatRows = simd.Paths[func(dst []byte, stride int, t *Tile, columns, from, rows int)]{writeBFloatGeneric,
		writeBFloatGeneric, writeBFloatAVX512}
)

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
