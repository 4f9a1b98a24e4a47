package text

import (
	"fmt"
	"math"
)

// check tells whether rows first to first+n-1 are within every buffer that is not nil.
func (c *Columns) check(first, n int) error {
	if first < 0 || n < 0 || first > math.MaxInt-n {
		return fmt.Errorf("criteo columns: rows %d to %d+%d: %w", first, first, n, ErrColumns)
	}
	short := func(v []int64, ok []byte) bool {
		return v != nil && len(v) < first+n || ok != nil && len(ok) < first+n
	}
	for f := range fields {
		if v, ok := c.column(f); short(v, ok) {
			return fmt.Errorf("criteo columns: %s does not hold rows %d to %d+%d: %w", fieldName(f), first, first, n, ErrColumns)
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

// deal moves the first n rows of the block to rows first, first+1, ... of c.
func (d *Decoder) deal(c *Columns, first, n int) {
	cells, bits := d.cells[:n], d.valid[:n]
	for f := range fields {
		values, valid := c.column(f)
		if values != nil {
			values = values[first : first+n]
			switch {
			case f < d.first:
				clear(values)
			case f <= Dense:
				for r := range values {
					values[r] = int64(int32(cells[r][f]))
				}
			default:
				for r := range values {
					values[r] = int64(cells[r][f])
				}
			}
		}
		if valid != nil {
			valid = valid[first : first+n]
			for r := range valid {
				valid[r] = byte(bits[r]>>f) & 1
			}
		}
	}
}
