package engine

import "github.com/millrace/millrace/fpga/unit/rowmajor"

// A row of dense may be some hundred columns long, and columns come one by one: written so, every value would touch a
// cache line of its own. So neighbouring columns are gathered, and written together as they lie.
// tile holds up to rowmajor.Columns neighbouring columns of dense, rows first, first+1, ... of the mini-batch.
type tile struct {
	values *rowmajor.Tile
	column uint64                // of dense, that column 0 is
	first  uint64                // row of the mini-batch
	filled [rowmajor.Columns]int // rows of each column
}

// denseRoom is the memory in the tile of n values of a column, rows row, row+1, ..., to be filled and then put; nil where they do not
// fit in.
func (o *tensors) denseRoom(column, row uint64, n int) []float32 {
	t := &o.tile
	if t.values == nil {
		t.values = new(rowmajor.Tile)
	}
	c := int(column % rowmajor.Columns)
	if column-uint64(c) != t.column || row != t.first+uint64(t.filled[c]) || t.filled[c] == rowmajor.Rows {
		o.flushDense()
		t.column, t.first = column-uint64(c), row
	}
	if room := t.values.Column(c)[t.filled[c]:]; len(room) >= n {
		return room[:n]
	}
	return nil
}

// putDense writes values of a column as rows row, row+1, ... They are in place after flushDense.
func (o *tensors) putDense(column, row uint64, src []float32) {
	t := &o.tile
	for len(src) > 0 {
		o.denseRoom(column, row, 1)
		c := column % rowmajor.Columns
		dst := t.values.Column(int(c))[t.filled[c]:]
		n := min(len(dst), len(src))
		if &dst[0] != &src[0] { // else the last operator wrote them there
			copy(dst, src[:n])
		}
		t.filled[c] += n
		src, row = src[n:], row+uint64(n)
	}
}

// flushDense writes what the tile holds: rows that its first columns have together as rows, the rest by columns.
func (o *tensors) flushDense() {
	t := &o.tile
	together, rows := 0, t.filled[0]
	for together < rowmajor.Columns && t.filled[together] > 0 {
		rows = min(rows, t.filled[together])
		together++
	}
	if together > 1 {
		t.values.Write(o.dense[4*(t.first*o.width+t.column):], 4*int(o.width), together, rows)
	} else {
		together = 0
	}
	for c, n := range t.filled {
		from := 0
		if c < together {
			from = rows
		}
		if n > from {
			at := t.first + uint64(from)
			scatter(o.dense[4*(at*o.width+t.column+uint64(c)):], 4*int(o.width), t.values.Column(c)[from:n])
		}
	}
	clear(t.filled[:])
}
