// Package kernel makes the operator list_slice ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/listslice"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/listslice"
)

// Unit is the unit that computes the operator.
const Unit = listslice.Unit

// step keeps a part of every list, and fills lists up to one length if the operator says so.
type step struct {
	kind   program.Kind
	slice  listslice.Op
	length int64 // The length of padded lists.
}

// Compile makes the operator ready.
func Compile(op program.Op, in program.Kind, _ *block.Tables) (block.Step, error) {
	s := &step{kind: in, slice: op.(listslice.Op)}
	if !s.slice.Padded {
		return s, nil
	}
	var err error
	s.length, err = unit.Length(s.slice.Start, s.slice.End)
	return s, err
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	b.OwnValues(v)
	b.OwnLengths(v)
	var err error
	switch s.kind {
	case program.Int64:
		v.Int64s, err = cutAndPad(s, v, v.Int64s, &b.Grown.Int64s, &b.Int64s, s.slice.PadInt)
		v.Count = len(v.Int64s)
	case program.Float32:
		v.Float32s, err = cutAndPad(s, v, v.Float32s, &b.Grown.Float32s, &b.Float32s, float32(s.slice.PadFloat))
		v.Count = len(v.Float32s)
	default:
		v.Float64s, err = cutAndPad(s, v, v.Float64s, &b.Grown.Float64s, &b.Float64s, s.slice.PadFloat)
		v.Count = len(v.Float64s)
	}
	return err
}

// cutAndPad returns the values of the parts of v's lists. Parts that are filled up are written to *grown, which then
// becomes *own.
func cutAndPad[T any](s *step, v *block.Values, values []T, grown, own *[]T, pad T) ([]T, error) {
	kept, err := unit.Cut(v.Lengths, values[:v.Count], s.slice.Start, s.slice.End)
	if err != nil || !s.slice.Padded {
		return values[:kept], err
	}
	dst := block.Resize(grown, len(v.Lengths)*int(s.length))
	if err := unit.Pad(dst, v.Lengths, values[:kept], s.length, pad); err != nil {
		return nil, err
	}
	*grown, *own = *own, dst
	return dst, nil
}
