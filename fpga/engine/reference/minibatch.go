package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Tensors are the tensors of one mini-batch of B rows.
type Tensors struct {
	Rows    int
	Label   []float32 // [B]; nil if the output has none
	Dense   []float32 // [B, D] row-major
	Lengths []int32   // [F, B], also where the output leaves them out because all are 1
	Values  []int64   // feature-major, then batch
}

// MiniBatch builds the mini-batch of rows rows from row first of the partition on.
func (d *Reader) MiniBatch(first int64, rows int) (*Tensors, error) {
	if first < 0 || rows < 0 || first+int64(rows) > d.Rows() {
		return nil, fmt.Errorf("reference: rows %d+%d of %d", first, rows, d.Rows())
	}
	out := d.program.Output
	t := &Tensors{Rows: rows, Dense: make([]float32, rows*int(out.Dense)), Lengths: make([]int32, rows*int(out.Keys))}
	if out.Label {
		t.Label = make([]float32, rows)
	}
	// lists[f][b] is the list of key f in row b.
	lists := make([][][]int64, out.Keys)
	for f := range lists {
		lists[f] = make([][]int64, rows)
	}
	for i := range d.program.Columns {
		c := &d.program.Columns[i]
		for b := range rows {
			v, err := d.value(i, first+int64(b))
			if err != nil {
				return nil, fmt.Errorf("reference: %w", err)
			}
			for j := range c.Sinks {
				if err := d.put(t, lists, c, &c.Sinks[j], b, v); err != nil {
					return nil, fmt.Errorf("reference: column %q: row %d: %w", c.Name, first+int64(b), err)
				}
			}
		}
	}
	for f := range lists {
		for b, list := range lists[f] {
			t.Lengths[f*rows+b] = int32(len(list))
			t.Values = append(t.Values, list...)
		}
	}
	return t, nil
}

// put runs one row's value through a sink's chain and into its tensor.
func (d *Reader) put(t *Tensors, lists [][][]int64, c *program.Column, s *program.Sink, b int, v any) error {
	out := d.program.Output
	v, err := d.eval.chain(s.Ops, c, v)
	if err != nil {
		return err
	}
	if s.To != program.ToSparse {
		x, ok := v.(float32)
		if !ok {
			return fmt.Errorf("%w: a null reaches %v", ErrData, s.To)
		}
		if s.To == program.ToLabel {
			t.Label[b] = x
		} else {
			t.Dense[b*int(out.Dense)+int(s.Index)] = x
		}
		return nil
	}
	list, err := ids(v, out.IDs)
	if err != nil {
		return err
	}
	if out.Fixed && len(list) != 1 {
		return fmt.Errorf("%w: a length of %d where all are 1", ErrData, len(list))
	}
	lists[s.Index][b] = list
	return nil
}

// ids is the list that a row's value is in a keyed jagged tensor.
func ids(v any, as program.IDs) ([]int64, error) {
	elements, isList := v.([]any)
	switch {
	case v == nil, isList && holdsNull(elements):
		return nil, nil
	case !isList:
		elements = []any{v}
	}
	list := make([]int64, len(elements))
	for i, e := range elements {
		id := e.(int64)
		if as == program.IDs32 && id != int64(int32(id)) {
			return nil, fmt.Errorf("%w: id %d does not fit int32", ErrData, id)
		}
		list[i] = id
	}
	return list, nil
}
