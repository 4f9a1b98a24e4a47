package engine

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/listslice"
	"github.com/millrace/millrace/fpga/unit/ngram"
)

// grownLists is the memory for lists that are longer than those they are made of. It changes places with the chain's
// own buffer once it is written.
type grownLists struct {
	int64s   []int64
	float32s []float32
	float64s []float64
}

// sliceLists keeps a part of every list, and fills lists up to one length if the step says so.
func (b *buffers) sliceLists(s *step, v *chainValues) error {
	b.ownValues(v)
	b.ownLengths(v)
	var err error
	switch v.kind {
	case program.Int64:
		v.int64s, err = cutAndPad(s, v, v.int64s, &b.grown.int64s, &b.int64s, s.slice.PadInt)
		v.count = len(v.int64s)
	case program.Float32:
		v.float32s, err = cutAndPad(s, v, v.float32s, &b.grown.float32s, &b.float32s, float32(s.slice.PadFloat))
		v.count = len(v.float32s)
	default:
		v.float64s, err = cutAndPad(s, v, v.float64s, &b.grown.float64s, &b.float64s, s.slice.PadFloat)
		v.count = len(v.float64s)
	}
	return err
}

// listWindows replaces every list by the ids of its windows of n ids.
func (b *buffers) listWindows(n int64, v *chainValues) error {
	dst, err := ngram.List(b.grown.int64s[:0], v.lengths, v.int64s[:v.count], n)
	if err != nil {
		return err
	}
	b.grown.int64s, b.int64s = b.int64s, dst
	v.int64s, v.count, v.ownsValues = dst, len(dst), true
	return nil
}

// cutAndPad returns the values of the parts of v's lists. Parts that are filled up are written to *grown, which then
// becomes *own.
func cutAndPad[T any](s *step, v *chainValues, values []T, grown, own *[]T, pad T) ([]T, error) {
	kept, err := listslice.Cut(v.lengths, values[:v.count], s.slice.Start, s.slice.End)
	if err != nil || !s.slice.Padded {
		return values[:kept], err
	}
	dst := resize(grown, len(v.lengths)*int(s.sliceLength))
	if err := listslice.Pad(dst, v.lengths, values[:kept], s.sliceLength, pad); err != nil {
		return nil, err
	}
	*grown, *own = *own, *grown
	return dst, nil
}
