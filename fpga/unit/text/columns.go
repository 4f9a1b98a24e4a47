package text

import (
	"fmt"
	"math"
	"unsafe"
)

// check reports whether rows first to first+n-1 are within every buffer that is not nil.
func (c *Columns) check(first, n int) error {
	if first < 0 || n < 0 || first > math.MaxInt-n {
		return fmt.Errorf("criteo columns: rows %d to %d+%d: %w", first, first, n, ErrColumns)
	}
	short := func(v []int64, ok []byte) bool {
		return v != nil && len(v) < first+n || ok != nil && len(ok) < first+n
	}
	for f := range fields {
		if v, ok := c.column(f); short(v, ok) {
			return fmt.Errorf("criteo columns: %s does not hold rows %d to %d+%d: %w", FieldName(f), first, first, n,
				ErrColumns)
		}
	}
	return nil
}

// column returns the buffers of one field.
func (c *Columns) column(field int) (values []int64, valid []byte) {
	switch {
	case field == 0:
		return c.Label, c.LabelValid
	case field <= Dense:
		return c.Dense[field-1], c.DenseValid[field-1]
	}
	return c.Sparse[field-1-Dense], c.SparseValid[field-1-Dense]
}

// deal moves the first n rows of the block to rows first, first+1, ... of c. A label that is absent is a cell that
// nothing but 0 is ever written to.
func (d *Decoder) writeBlock(c *Columns, first, n int) {
	from, known := 0, false
	if d.vectors > noVectors {
		from = d.targets.columns(d.vectors, (*byte)(unsafe.Pointer(&d.cells)), first, n, 0)
		known = d.targets.validity(d.vectors, &d.planes, first, n)
	}
	if from == n && known {
		return
	}
	for f := range fields {
		values, valid := c.column(f)
		if values != nil {
			d.dealCells(values[first:first+n], f, from)
		}
		if valid != nil && !known {
			plane, valid := &d.planes[f/8], valid[first:first+n]
			for r := range valid {
				valid[r] = plane[r] >> (f % 8) & 1
			}
		}
	}
}

// dealCells moves a field of the block's rows from, from+1, ...
func (d *Decoder) dealCells(values []int64, f, from int) {
	cells := d.cells[:len(values)]
	if f <= Dense {
		for r := from; r < len(values); r++ {
			values[r] = int64(int32(cells[r][f]))
		}
		return
	}
	for r := from; r < len(values); r++ {
		values[r] = int64(cells[r][f])
	}
}
