package tensor

// Compactor makes one mini-batch of chosen rows of several, which must have one schema.
type Compactor struct {
	schema *Schema
	rows   int // taken so far
	want   int // The rows of the mini-batch.

	// with the tensors that have a fixed place for each row, and with room for values if all rows have one of each key
	made       *MiniBatch
	values32   [][]int32 // by key; nil if every row has one value
	values64   [][]int64
	weights    [][]float32
	offsets    []int64 // Where lists begin in the mini-batch that rows are taken from. The memory is used again.
	listValues int     // The values of all keys.
}

// NewCompactor begins a mini-batch of a number of rows. The error wraps ErrShape.
func NewCompactor(s *Schema, rows int) (*Compactor, error) {
	c := &Compactor{schema: s, want: rows}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	values, f := 0, len(s.Keys)
	if s.Fixed() {
		values = rows * f
	} else if s.IDs == Int32 {
		c.values32 = make([][]int32, f)
	} else {
		c.values64 = make([][]int64, f)
	}
	if s.Weights && !s.Fixed() {
		c.weights = make([][]float32, f)
	}
	var err error
	c.made, err = Make(s, rows, values)
	return c, err
}

// Missing returns how many rows the mini-batch lacks.
func (c *Compactor) Missing() int { return c.want - c.rows }

// Append takes rows of a mini-batch, which ascend. The error wraps ErrShape.
func (c *Compactor) Append(m *MiniBatch, rows []uint32) error {
	switch {
	case !m.Schema.Equal(c.schema):
		return shapeError("a mini-batch of another schema")
	case m.Unique != nil:
		return shapeError("a mini-batch that is deduplicated: compact it first")
	case len(rows) > c.Missing():
		return shapeError("%d rows for a mini-batch that lacks %d", len(rows), c.Missing())
	}
	for i, row := range rows {
		if int64(row) >= int64(m.Rows) || i > 0 && row <= rows[i-1] {
			return shapeError("row %d of %d behind others", row, m.Rows)
		}
	}
	if c.schema.Label {
		copyRows(c.made.Label[c.rows:], m.Label, rows, 1)
	}
	if d := len(c.schema.Dense); d > 0 && c.made.Dense16 != nil {
		copyRows(c.made.Dense16[c.rows*d:], m.Dense16, rows, d)
	} else if d > 0 {
		copyRows(c.made.Dense[c.rows*d:], m.Dense, rows, d)
	}
	if len(c.schema.Keys) > 0 {
		if c.schema.Fixed() {
			c.appendSingles(m, rows)
		} else if err := c.appendLists(m, rows); err != nil {
			return err
		}
	}
	c.rows += len(rows)
	return nil
}

// copyRows copies rows of width elements.
func copyRows[T any](dst, src []T, rows []uint32, width int) {
	if width == 1 {
		for i, row := range rows {
			dst[i] = src[row]
		}
		return
	}
	for i, row := range rows {
		copy(dst[i*width:][:width], src[int(row)*width:])
	}
}

// appendSingles takes the values of rows that have one value of each key.
func (c *Compactor) appendSingles(m *MiniBatch, rows []uint32) {
	for key := range c.schema.Keys {
		from, to := key*m.Rows, key*c.want+c.rows
		if c.schema.IDs == Int32 {
			copyRows(c.made.Values32[to:], m.Values32[from:], rows, 1)
		} else {
			copyRows(c.made.Values64[to:], m.Values64[from:], rows, 1)
		}
		if c.schema.Weights {
			copyRows(c.made.Weights[to:], m.Weights[from:], rows, 1)
		}
	}
}

// appendLists takes the lists of rows.
func (c *Compactor) appendLists(m *MiniBatch, rows []uint32) error {
	c.offsets = m.Offsets(c.offsets[:0])
	if n := c.offsets[len(c.offsets)-1]; n != int64(m.Values()) {
		return shapeError("lists of %d values, and %d values", n, m.Values())
	}
	for key := range c.schema.Keys {
		for i, row := range rows {
			at := key*m.Rows + int(row)
			lo, hi := c.offsets[at], c.offsets[at+1]
			c.made.Lengths[key*c.want+c.rows+i] = int32(hi - lo)
			c.listValues += int(hi - lo)
			if c.values32 != nil {
				c.values32[key] = append(c.values32[key], m.Values32[lo:hi]...)
			} else {
				c.values64[key] = append(c.values64[key], m.Values64[lo:hi]...)
			}
			if c.weights != nil {
				c.weights[key] = append(c.weights[key], m.Weights[lo:hi]...)
			}
		}
	}
	return nil
}

// MiniBatch returns the mini-batch, which has memory of its own. It wraps ErrShape if rows are missing. The compactor
// must not be used afterwards.
func (c *Compactor) MiniBatch() (*MiniBatch, error) {
	if c.Missing() > 0 {
		return nil, shapeError("a mini-batch that lacks %d of %d rows", c.Missing(), c.want)
	}
	if _, err := Layout(c.schema, c.want, c.made.Values()+c.listValues); err != nil {
		return nil, err
	}
	if c.values32 != nil {
		c.made.Values32 = join(c.values32, c.listValues)
	}
	if c.values64 != nil {
		c.made.Values64 = join(c.values64, c.listValues)
	}
	if c.weights != nil {
		c.made.Weights = join(c.weights, c.listValues)
	}
	return c.made, nil
}

// join returns the elements of all lists, which are n.
func join[T any](lists [][]T, n int) []T {
	all := make([]T, 0, n)
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}
