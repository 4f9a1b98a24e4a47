package rowmajor

import (
	"encoding/binary"
	"math"

	"github.com/millrace/millrace/fpga/unit/bfloat16"
)

// The shape of a Tile.
const (
	Columns = 16 // a cache line of float32
	Rows    = 8192
	// Stride is the floats from one column to the next: not a multiple of the caches' ways, so that columns do not meet
	// in the same sets.
	Stride = Rows + 16
)

// Tile holds Rows rows of Columns columns: row r of column c is element c*Stride + r.
type Tile [Columns * Stride]float32

// Column returns column c's memory.
func (t *Tile) Column(c int) []float32 { return t[c*Stride:][:Rows:Rows] }

// Write writes the first rows of the first columns to dst as little-endian float32, each row stride bytes behind the
// one before. dst must reach to the end of the last row.
func (t *Tile) Write(dst []byte, stride, columns, rows int) {
	if rows <= 0 || columns <= 0 {
		return
	}
	_ = dst[(rows-1)*stride+4*columns-1]
	writeRows.Pick()(dst, stride, t, columns, 0, rows)
}

// writeGeneric writes rows [from, rows) of the first columns.
func writeGeneric(dst []byte, stride int, t *Tile, columns, from, rows int) {
	if columns == Columns {
		for r := from; r < rows; r++ {
			d := dst[r*stride:][: 4*Columns : 4*Columns]
			for c := range Columns {
				binary.LittleEndian.PutUint32(d[4*c:], math.Float32bits(t[c*Stride+r]))
			}
		}
		return
	}
	for r := from; r < rows; r++ {
		d := dst[r*stride:][:4*columns]
		for at := r; len(d) >= 4; at += Stride {
			binary.LittleEndian.PutUint32(d, math.Float32bits(t[at]))
			d = d[4:]
		}
	}
}

// WriteBFloat16 is Write with every value rounded to bfloat16, two bytes each, as package bfloat16 says.
func (t *Tile) WriteBFloat16(dst []byte, stride, columns, rows int) {
	if rows <= 0 || columns <= 0 {
		return
	}
	_ = dst[(rows-1)*stride+2*columns-1]
	writeBFloatRows.Pick()(dst, stride, t, columns, 0, rows)
}

// writeBFloatGeneric writes rows [from, rows) of the first columns, rounded to bfloat16.
func writeBFloatGeneric(dst []byte, stride int, t *Tile, columns, from, rows int) {
	for r := from; r < rows; r++ {
		d := dst[r*stride:][:2*columns]
		for at := r; len(d) >= 2; at += Stride {
			binary.LittleEndian.PutUint16(d, bfloat16.Round(t[at]))
			d = d[2:]
		}
	}
}
