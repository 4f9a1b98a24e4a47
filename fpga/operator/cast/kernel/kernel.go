// Package kernel makes the operator cast ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/cast"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/cast"
	"github.com/millrace/millrace/fpga/unit/convert"
)

// Unit is the unit that computes the operator.
const Unit = cast.Unit

// toInt64 makes integers of real numbers or of unsigned integers.
type toInt64 struct {
	from    program.Kind
	orNulls bool
}

// toReals makes real numbers of another kind of numbers.
type toReals struct {
	from, to program.Kind
	unsigned bool
}

// toBits makes integers of the bits of float64 numbers.
type toBits struct{}

// Compile makes the operator ready.
func Compile(op program.Op, in program.Kind, _ *block.Tables) (block.Step, error) {
	switch o := op.(cast.Op); o.To {
	case cast.Int64:
		return &toInt64{in, o.Overflow == cast.Null}, nil
	case cast.Float64Bits:
		return toBits{}, nil
	default:
		return &toReals{in, o.Out(in), o.From == cast.Unsigned}, nil
	}
}

// Run implements block.Step. A number that overflows is an error, or becomes a null.
func (s *toInt64) Run(b *block.Buffers, v *block.Values) error {
	if s.orNulls {
		b.OwnValidity(v)
	}
	switch {
	case s.from == program.Int64 && s.orNulls:
		unit.NullUint64(v.Int64s[:v.Count], v.Valid)
		b.DropFullValidity(v)
		return nil
	case s.from == program.Int64:
		return unit.CheckUint64(v.Int64s[:v.Count], v.Valid)
	case s.orNulls:
		dst := block.Resize(&b.Int64s, v.Count) // ids with nulls among them do not lie in the tensor as they are
		if s.from == program.Float32 {
			unit.FloatToInt64OrNull(dst, v.Float32s[:v.Count], v.Valid)
		} else {
			unit.FloatToInt64OrNull(dst, v.Float64s[:v.Count], v.Valid)
		}
		setIntegers(v, dst)
		b.DropFullValidity(v)
		return nil
	}
	dst := b.IntDestination(v.Count)
	var err error
	if s.from == program.Float32 {
		err = unit.FloatToInt64(dst, v.Float32s[:v.Count], v.Valid)
	} else {
		err = unit.FloatToInt64(dst, v.Float64s[:v.Count], v.Valid)
	}
	setIntegers(v, dst)
	return err
}

// Run implements block.Step.
func (s *toReals) Run(b *block.Buffers, v *block.Values) error {
	if s.to == program.Float64 {
		dst := block.Resize(&b.Float64s, v.Count)
		switch {
		case s.unsigned:
			unit.Uint64ToFloat(dst, v.Int64s[:v.Count])
		case s.from == program.Int64:
			convert.Int64ToFloat64(dst, v.Int64s[:v.Count])
		default:
			convert.Float32ToFloat64(dst, v.Float32s[:v.Count])
		}
		v.Float64s = dst
	} else {
		dst := b.FloatDestination(v.Count)
		switch {
		case s.unsigned:
			unit.Uint64ToFloat(dst, v.Int64s[:v.Count])
		case s.from == program.Int64:
			convert.Int64ToFloat32(dst, v.Int64s[:v.Count])
		default:
			convert.Float64ToFloat32(dst, v.Float64s[:v.Count])
		}
		v.Float32s = dst
	}
	v.Kind, v.OwnsValues = s.to, true
	return nil
}

// Run implements block.Step.
func (toBits) Run(b *block.Buffers, v *block.Values) error {
	dst := b.IntDestination(v.Count)
	unit.Float64Bits(dst, v.Float64s[:v.Count])
	setIntegers(v, dst)
	return nil
}

// setIntegers makes integers in memory of the chain the values.
func setIntegers(v *block.Values, integers []int64) {
	v.Kind, v.Int64s, v.Float32s, v.Float64s, v.OwnsValues = program.Int64, integers, nil, nil, true
}
