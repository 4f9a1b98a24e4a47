package engine

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/decimal"
	"github.com/millrace/millrace/fpga/unit/float16"
	"github.com/millrace/millrace/fpga/unit/int96"
)

// convertInt96 turns timestamps into integers. A null stays null, and a list that holds a null becomes empty.
func (b *buffers) convertInt96(unit int96.Unit, v *chainValues) error {
	dst := b.intDestination(v.count)
	if v.count > 0 {
		if err := int96.ToTime(dst, v.offsets, v.data, v.valid, unit); err != nil {
			return err
		}
	}
	v.int64s = dst
	b.endBytes(program.Int64, v)
	return nil
}

// convertDecimals turns decimals into numbers. A null stays null, and a list of bytes that holds a null becomes empty.
func (b *buffers) convertDecimals(s *step, v *chainValues) error {
	if v.kind == program.Int64 {
		var err error
		if s.outputKind == program.Float64 {
			v.float64s = resize(&b.float64s, v.count)
			err = decimal.Int64ToFloat64(v.float64s, v.int64s[:v.count], s.scale)
		} else {
			v.float32s = b.floatDestination(v.count)
			err = decimal.Int64ToFloat32(v.float32s, v.int64s[:v.count], s.scale)
		}
		v.kind, v.ownsValues = s.outputKind, true
		return err
	}
	var err error
	valid := b.validOutsideNullLists(v)
	switch s.outputKind {
	case program.Int64:
		if v.int64s = b.intDestination(v.count); v.count > 0 {
			err = decimal.BytesToInt64(v.int64s, v.offsets, v.data, valid)
		}
	case program.Float64:
		if v.float64s = resize(&b.float64s, v.count); v.count > 0 {
			err = decimal.BytesToFloat64(v.float64s, v.offsets, v.data, valid, s.scale)
		}
	default:
		if v.float32s = b.floatDestination(v.count); v.count > 0 {
			err = decimal.BytesToFloat32(v.float32s, v.offsets, v.data, valid, s.scale)
		}
	}
	if err != nil {
		return err
	}
	b.endBytes(s.outputKind, v)
	return nil
}

// validOutsideNullLists returns the validity of v's values, in which all values of a list that holds a null are null,
// so that no value of such a list can fail: the list becomes empty. v's validity comes from the decoder.
func (b *buffers) validOutsideNullLists(v *chainValues) []byte {
	if !v.list || v.valid == nil {
		return v.valid
	}
	valid := resize(&b.valid, v.count)
	copy(valid, v.valid)
	b.flagNullLists(v)
	b.nullFlaggedLists(v, valid)
	return valid
}

// endBytes notes that bytes have become numbers in memory of the chain. A list that holds a null becomes empty.
func (b *buffers) endBytes(kind program.Kind, v *chainValues) {
	v.kind, v.ownsValues, v.offsets, v.data = kind, true, nil, nil
	if v.list && v.valid != nil {
		b.emptyNullLists(v)
	}
}

// widenHalves turns values of two bytes into float32. Nulls stay, in lists, too.
func (b *buffers) widenHalves(v *chainValues) error {
	dst := b.floatDestination(v.count)
	if v.count > 0 {
		if err := float16.ToFloat32(dst, v.offsets, v.data, v.valid); err != nil {
			return err
		}
	}
	v.kind, v.float32s, v.ownsValues, v.offsets, v.data = program.Float32, dst, true, nil, nil
	return nil
}
