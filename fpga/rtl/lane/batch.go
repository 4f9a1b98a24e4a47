package lane

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// The tile of unit row_packer.
const (
	tileRows    = 512
	tileColumns = 16
)

// batch is a mini-batch that is being made.
type batch struct {
	first  int64
	rows   int
	output program.Output

	label   []float32
	columns [][]float32 // The columns of dense.
	lengths [][]int32   // Each key has its own.
	values  [][]int64   // Each key has its own.
}

func (r *Reader) newBatch(first int64, rows int) *batch {
	out := r.plan.program.Output
	return &batch{first: first, rows: rows, output: out, columns: make([][]float32, out.Dense),
		lengths: make([][]int32, out.Keys), values: make([][]int64, out.Keys)}
}

// add adds rows of what a sink's chain made.
func (b *batch) add(sink *program.Sink, v *rowsMade, row, n int) error {
	switch sink.To {
	case program.ToSparse:
		return b.addIDs(sink.Index, v, row, n)
	case program.ToLabel:
		var err error
		b.label, err = appendFloats(b.label, sink, v, row, n)
		return err
	}
	var err error
	b.columns[sink.Index], err = appendFloats(b.columns[sink.Index], sink, v, row, n)
	return err
}

// appendFloats appends the values of rows. A null, and a number that the sink refuses, is an error.
func appendFloats(to []float32, sink *program.Sink, v *rowsMade, row, n int) ([]float32, error) {
	for ; n > 0; row, n = row+1, n-1 {
		if !v.present[row] {
			return nil, fmt.Errorf("row %d of its row group: %w: a null reaches %v", row, ErrData, sink.To)
		}
		x := math.Float32frombits(uint32(v.values[row]))
		if sink.Refuses >= program.RefusesNaN && x != x || sink.Refuses == program.RefusesNonFinite && x-x != 0 {
			return nil, fmt.Errorf("row %d of its row group: %w: %v reaches %v", row, ErrData, x, sink.To)
		}
		to = append(to, x)
	}
	return to, nil
}

// addIDs adds the ids of rows to a key. A null has none.
func (b *batch) addIDs(key uint32, v *rowsMade, row, n int) error {
	for ; n > 0; row, n = row+1, n-1 {
		length := int32(0)
		for at := v.starts[row]; at < v.starts[row+1]; at++ {
			if !v.present[at] {
				continue
			}
			id := int64(v.values[at])
			if b.output.IDs == program.IDs32 && !fitsInt32(id) {
				return fmt.Errorf("row %d of its row group: %w: id %d does not fit int32", row, ErrData, id)
			}
			b.values[key] = append(b.values[key], id)
			length++
		}
		if b.output.Fixed && length != 1 {
			return fmt.Errorf("row %d of its row group: %w: a length of %d where all are 1", row, ErrData, length)
		}
		b.lengths[key] = append(b.lengths[key], length)
	}
	return nil
}

// finish packs the rows of dense and puts the tensors together.
func (b *batch) finish(s *Simulation) (*Tensors, error) {
	s.sets[0].note(firmwareTensors)
	t := &Tensors{Rows: b.rows, Label: b.label, Dense: make([]float32, b.rows*int(b.output.Dense))}
	for key := range b.lengths {
		t.Lengths, t.Values = append(t.Lengths, b.lengths[key]...), append(t.Values, b.values[key]...)
	}
	width := len(b.columns)
	across := (width + tileColumns - 1) / tileColumns
	tiles := (b.rows + tileRows - 1) / tileRows * across
	err := s.each(tiles, func(set *unitSet, tile int) error {
		first, column := tile/across*tileRows, tile%across*tileColumns
		rows := min(tileRows, b.rows-first)
		var columns []float32
		for _, values := range b.columns[column:min(column+tileColumns, width)] {
			columns = append(columns, values[first:first+rows]...)
		}
		return set.packRows(columns, rows, func(row int, values []float32) {
			copy(t.Dense[(first+row)*width+column:], values)
		})
	})
	return t, err
}
