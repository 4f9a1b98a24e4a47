// Package kernel makes the operator decimal ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/decimal"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/decimal"
)

// Unit is the unit that computes the operator.
const Unit = decimal.Unit

// ofIntegers turns decimals that are integers into floats.
type ofIntegers struct {
	scale uint8
	to    program.Kind
}

// ofBytes turns decimals that are strings of bytes into numbers.
type ofBytes struct {
	scale uint8
	to    program.Kind
}

// Compile makes the operator ready.
func Compile(op program.Op, in program.Kind, _ *block.Tables) (block.Step, error) {
	o := op.(decimal.Op)
	if in == program.Int64 {
		return &ofIntegers{o.Scale, o.To}, nil
	}
	return &ofBytes{o.Scale, o.To}, nil
}

// Run implements block.Step.
func (s *ofIntegers) Run(b *block.Buffers, v *block.Values) error {
	var err error
	if s.to == program.Float64 {
		v.Float64s = block.Resize(&b.Float64s, v.Count)
		err = unit.Int64ToFloat64(v.Float64s, v.Int64s[:v.Count], s.scale)
	} else {
		v.Float32s = b.FloatDestination(v.Count)
		err = unit.Int64ToFloat32(v.Float32s, v.Int64s[:v.Count], s.scale)
	}
	v.Kind, v.OwnsValues = s.to, true
	return err
}

// Run implements block.Step. A null stays null, and a list that holds a null becomes empty.
func (s *ofBytes) Run(b *block.Buffers, v *block.Values) error {
	var err error
	valid := b.ValidOutsideNullLists(v)
	switch s.to {
	case program.Int64:
		if v.Int64s = b.IntDestination(v.Count); v.Count > 0 {
			err = unit.BytesToInt64(v.Int64s, v.Offsets, v.Data, valid)
		}
	case program.Float64:
		if v.Float64s = block.Resize(&b.Float64s, v.Count); v.Count > 0 {
			err = unit.BytesToFloat64(v.Float64s, v.Offsets, v.Data, valid, s.scale)
		}
	default:
		if v.Float32s = b.FloatDestination(v.Count); v.Count > 0 {
			err = unit.BytesToFloat32(v.Float32s, v.Offsets, v.Data, valid, s.scale)
		}
	}
	if err != nil {
		return err
	}
	b.EndBytes(s.to, v)
	return nil
}
