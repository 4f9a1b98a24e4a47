package engine

import "math"

// A row of dense may be some hundred columns long, and columns come one by one: written so, every value would touch a
// cache line of its own. So neighbouring columns are gathered, and written together as they lie.
const (
	tileColumns = 16 // a cache line of float32
	tileRows    = 8192
	// tileStride keeps the columns' beginnings in different sets of the cache.
	tileStride = tileRows + 16
)

// tile holds up to tileColumns neighbouring columns of dense, rows first, first+1, ... of the mini-batch.
type tile struct {
	values []float32         // column c from c * tileStride on
	column uint64            // of dense, that column 0 is
	first  uint64            // row of the mini-batch
	filled [tileColumns]uint // rows of each column
}

// putDense writes values of a column as rows row, row+1, ... They are in place after flushDense.
func (o *tensors) putDense(column, row uint64, src []float32) {
	t := &o.tile
	if t.values == nil {
		t.values = make([]float32, tileColumns*tileStride)
	}
	for len(src) > 0 {
		c := column % tileColumns
		if column-c != t.column || row != t.first+uint64(t.filled[c]) || t.filled[c] == tileRows {
			o.flushDense()
			t.column, t.first = column-c, row
		}
		n := copy(t.values[c*tileStride+uint64(t.filled[c]):(c+1)*tileStride-(tileStride-tileRows)], src)
		t.filled[c] += uint(n)
		src, row = src[n:], row+uint64(n)
	}
}

// flushDense writes what the tile holds: rows that all of its first columns have together, the rest by columns.
func (o *tensors) flushDense() {
	t := &o.tile
	together, rows := uint64(0), t.filled[0]
	for together < tileColumns && t.filled[together] > 0 {
		rows = min(rows, t.filled[together])
		together++
	}
	if together == 1 {
		together = 0
	}
	o.flushRows(together, uint64(rows))
	for c, n := range t.filled {
		from := uint(0)
		if uint64(c) < together {
			from = rows
		}
		if n > from {
			at := t.first + uint64(from)
			scatter(o.dense[4*(at*o.width+t.column+uint64(c)):], 4*int(o.width), t.values[c*tileStride+int(from):c*tileStride+int(n)])
		}
	}
	clear(t.filled[:])
}

// flushRows writes the first rows of the first columns, row by row.
func (o *tensors) flushRows(columns, rows uint64) {
	t := &o.tile
	if columns == 0 {
		return
	}
	stride := int(4 * o.width)
	dst := o.dense[4*(t.first*o.width+t.column):]
	if columns == tileColumns {
		var from [tileColumns][]float32
		for c := range from {
			from[c] = t.values[c*tileStride:][:rows]
		}
		for r := range int(rows) {
			d := dst[r*stride:][:4*tileColumns]
			for c := range from {
				le.PutUint32(d[4*c:], math.Float32bits(from[c][r]))
			}
		}
		return
	}
	for r := range int(rows) {
		d := dst[r*stride:][:4*columns]
		at := r
		for len(d) >= 4 {
			le.PutUint32(d, math.Float32bits(t.values[at]))
			d, at = d[4:], at+tileStride
		}
	}
}
