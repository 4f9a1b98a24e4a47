package reference

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Tensors are the tensors of one mini-batch of B rows.
type Tensors struct {
	Rows    int
	Label   []float32 // [B]; nil if the output has none
	Dense   []float32 // [B, D] row-major; bfloat16 as the float32 of the same value
	Lengths []int32   // [F, B], also where the output leaves them out because all are 1
	Values  []int64   // feature-major, then batch
	Weights []float32 // Weights are as many as Values; nil if the output has none.
}

// MiniBatch builds the mini-batch of rows rows from row first of the partition on.
func (r *Reader) MiniBatch(first int64, rows int) (*Tensors, error) {
	if first < 0 || rows < 0 || first+int64(rows) > r.Rows() {
		return nil, fmt.Errorf("reference: rows %d+%d of %d", first, rows, r.Rows())
	}
	out := r.program.Output
	t := &Tensors{Rows: rows, Dense: make([]float32, rows*int(out.Dense)), Lengths: make([]int32, rows*int(out.Keys))}
	if out.Label {
		t.Label = make([]float32, rows)
	}
	// lists[f][b] is the list of key f in row b.
	lists := make([][]weightedIDs, out.Keys)
	for f := range lists {
		lists[f] = make([]weightedIDs, rows)
	}
	for i := 0; i < len(r.program.Columns); i += r.program.Parts(i) {
		addRow := r.addRow
		if g := r.program.GraphAt(i); g != nil {
			addRow = func(t *Tensors, lists [][]weightedIDs, i, b int, row int64) error {
				return r.addGraphRow(g, t, lists, i, b, row)
			}
		}
		for b := range rows {
			if err := addRow(t, lists, i, b, first+int64(b)); err != nil {
				return nil, fmt.Errorf("reference: %w", err)
			}
		}
	}
	for f := range lists {
		for b, list := range lists[f] {
			t.Lengths[f*rows+b] = int32(len(list.ids))
			t.Values = append(t.Values, list.ids...)
			t.Weights = append(t.Weights, list.weights...)
		}
	}
	return t, nil
}

// weightedIDs is a list of ids and, if the output has weights, their weights.
type weightedIDs struct {
	ids     []int64
	weights []float32
}

// addRow runs the sinks of column i, or of the map that begins there, over a row of the partition. The row is row b of
// the mini-batch.
func (r *Reader) addRow(t *Tensors, lists [][]weightedIDs, i, b int, row int64) error {
	parts := r.program.Parts(i)
	c := &r.program.Columns[i]
	var v any
	var m *mapEntries
	var err error
	if parts == 1 {
		v, err = r.readValue(i, row)
	} else {
		c = &r.program.Columns[i+1]
		m, err = r.readMapRow(i, parts, row)
	}
	if err != nil {
		return err
	}
	for j := range c.Sinks {
		var scores []any
		scored := false
		if m != nil {
			v, scores = m.pickEntry(c.Picks[j])
			scored = c.Picks[j].Scored
		}
		s := &c.Sinks[j]
		list, err := r.storeValue(t, s, b, v)
		if err != nil {
			return fmt.Errorf("column %q: row %d: %w", c.Name, row, err)
		}
		if s.To == program.ToSparse {
			lists[s.Index][b].ids = list
			switch {
			case scored:
				weights, err := realScores(scores[:len(list)])
				if err != nil {
					return fmt.Errorf("column %q: row %d: %w", c.Name, row, err)
				}
				lists[s.Index][b].weights = weights
			case r.program.Output.Weights:
				lists[s.Index][b].weights = ones(len(list))
			}
		}
	}
	return nil
}

// storeValue runs one row's value through a sink's chain and stores it in dense or label. It returns the ids of a
// sparse sink.
func (r *Reader) storeValue(t *Tensors, s *program.Sink, b int, v any) ([]int64, error) {
	out := r.program.Output
	v, err := r.eval.sinks[s].run(v)
	if err != nil {
		return nil, err
	}
	if values, ok := v.([]float32); ok {
		for i, x := range values {
			if err := checkRefusal(s, x); err != nil {
				return nil, err
			}
			if out.DenseType == program.DenseBFloat16 {
				x = nearestBFloat16(x)
			}
			t.Dense[b*int(out.Dense)+int(s.Index)+i] = x
		}
		return nil, nil
	}
	if s.To != program.ToSparse {
		x, ok := v.(float32)
		if !ok {
			return nil, fmt.Errorf("%w: a null reaches %v", ErrData, s.To)
		}
		if err := checkRefusal(s, x); err != nil {
			return nil, err
		}
		if s.To == program.ToLabel {
			t.Label[b] = x
		} else {
			if out.DenseType == program.DenseBFloat16 {
				x = nearestBFloat16(x)
			}
			t.Dense[b*int(out.Dense)+int(s.Index)] = x
		}
		return nil, nil
	}
	list, err := idList(v, out.IDs)
	if err == nil && out.Fixed && len(list) != 1 {
		err = fmt.Errorf("%w: a length of %d where all are 1", ErrData, len(list))
	}
	return list, err
}

// checkRefusal returns an error if the sink refuses the value.
func checkRefusal(s *program.Sink, x float32) error {
	isNaN := math.IsNaN(float64(x))
	switch {
	case s.Refuses == program.RefusesNothing, s.Refuses == program.RefusesNaN && !isNaN,
		!isNaN && !math.IsInf(float64(x), 0):
		return nil
	case s.To == program.ToLabel:
		return fmt.Errorf("%w: the label is %v: write label: {nan: VALUE} with the value that a row with a NaN is to "+
			"have, and bound infinities with clamp, or filter the rows", ErrData, x)
	}
	return fmt.Errorf("%w: dense column %d is %v: put fill_nan last, or write nan: keep", ErrData, s.Index, x)
}

// idList returns the ids that a row's value stands for.
func idList(v any, as program.IDs) ([]int64, error) {
	elements, isList := v.([]any)
	switch {
	case v == nil, isList && rowvalue.HoldsNull(elements):
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
