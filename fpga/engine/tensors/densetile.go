package tensors

import "github.com/millrace/millrace/fpga/unit/rowmajor"

// denseTile holds up to rowmajor.Columns neighbouring columns of the dense tensor, for rows from FirstRow of the
// mini-batch on. A row of dense may be hundreds of columns long and the engine writes column after column. Values
// written one by one would touch a cache line each. The tile gathers neighbouring columns, and FlushDense writes them
// together as the tensor has them.
type denseTile struct {
	values   *rowmajor.Tile
	column   uint64                // the column of dense that is column 0 of the tile
	firstRow uint64                // the row of the mini-batch that is row 0
	filled   [rowmajor.Columns]int // how many rows each column has
}

// DenseDestination returns the tile's memory for n values of a column, rows row, row+1, ..., or nil where they do not
// fit. The caller fills it and then calls storeDense.
func (o *Output) DenseDestination(column, row uint64, n int) []float32 {
	t := &o.denseTile
	if t.values == nil {
		t.values = new(rowmajor.Tile)
	}
	c := int(column % rowmajor.Columns)
	if column-uint64(c) != t.column || row != t.firstRow+uint64(t.filled[c]) || t.filled[c] == rowmajor.Rows {
		o.FlushDense()
		t.column, t.firstRow = column-uint64(c), row
	}
	if room := t.values.Column(c)[t.filled[c]:]; len(room) >= n {
		return room[:n]
	}
	return nil
}

// storeDense writes values of a column as rows row, row+1, ... to the tile. They are in the tensor after FlushDense.
func (o *Output) storeDense(column, row uint64, src []float32) {
	t := &o.denseTile
	for len(src) > 0 {
		o.DenseDestination(column, row, 1)
		c := column % rowmajor.Columns
		dst := t.values.Column(int(c))[t.filled[c]:]
		n := min(len(dst), len(src))
		if &dst[0] != &src[0] { // else the last operator has written them there
			copy(dst, src[:n])
		}
		t.filled[c] += n
		src, row = src[n:], row+uint64(n)
	}
}

// FlushDense writes the tile to the tensor. Rows that all of the first columns have are written as rows, the rest
// column by column. The tile holds float32, and values are rounded here if the tensor holds bfloat16.
func (o *Output) FlushDense() {
	t := &o.denseTile
	stride := int(o.denseBytes * o.width)
	writeRows, writeColumn := t.values.Write, scatter
	if o.denseBytes == 2 {
		writeRows, writeColumn = t.values.WriteBFloat16, scatterBFloat16
	}
	together, rows := 0, t.filled[0]
	for together < rowmajor.Columns && t.filled[together] > 0 {
		rows = min(rows, t.filled[together])
		together++
	}
	if together > 1 {
		writeRows(o.dense[o.denseBytes*(t.firstRow*o.width+t.column):], stride, together, rows)
	} else {
		together = 0
	}
	for c, n := range t.filled {
		from := 0
		if c < together {
			from = rows
		}
		if n > from {
			at := t.firstRow + uint64(from)
			writeColumn(o.dense[o.denseBytes*(at*o.width+t.column+uint64(c)):], stride, t.values.Column(c)[from:n])
		}
	}
	clear(t.filled[:])
}
