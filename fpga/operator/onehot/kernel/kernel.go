// Package kernel makes the operator onehot ready to run over blocks. It finds the classes, and the engine writes the
// columns.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/onehot"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/onehot"
)

// Unit is the unit that computes the operator.
const Unit = onehot.Unit

// step replaces values by the numbers of their classes, -1 for none.
type step struct {
	kind    program.Kind
	classes unit.Classes
	count   uint32
}

// Compile makes the operator ready.
func Compile(op program.Op, in program.Kind, _ *block.Tables) (block.Step, error) {
	o := op.(onehot.Op)
	s := &step{kind: in, count: o.Classes}
	var err error
	if o.Ranges {
		s.classes, err = unit.NewRanges(int64(o.Classes), o.Lower, o.Upper)
	} else {
		s.classes, err = unit.New(int64(o.Classes))
	}
	return s, err
}

// Classes implements block.ClassNumberer.
func (s *step) Classes() uint32 { return s.count }

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	dst := block.Resize(&b.Grown.Int64s, v.Count)
	if s.kind == program.Int64 {
		s.classes.IDs(dst, v.Int64s[:v.Count])
	} else {
		s.classes.Ranges(dst, v.Float32s[:v.Count])
	}
	if v.Valid != nil {
		for i, ok := range v.Valid[:v.Count] {
			if ok == 0 {
				dst[i] = -1
			}
		}
	}
	v.Kind, v.Int64s, v.Valid, v.OwnsValues = program.Int64, dst, nil, true
	return nil
}
