// Package reference computes cast by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/cast"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/cast"
	"github.com/millrace/millrace/fpga/unit/convert"
)

// Unit is the operator's unit.
const Unit = cast.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(cast.Op)
	return rowvalue.OfValues(func(v any) (any, error) {
		switch o.To {
		case cast.Float32, cast.Float64:
			return toReal(v, o)
		case cast.Float64Bits:
			x, ok := v.(float64)
			if !ok {
				return nil, rowvalue.UnexpectedValue(v)
			}
			return unit.ReferenceBits(x), nil
		}
		return toInt64(v, o)
	}), nil
}

// toReal returns the real number nearest to v.
func toReal(v any, o cast.Op) (any, error) {
	narrow := o.To == cast.Float32
	switch x := v.(type) {
	case int64:
		switch {
		case o.From == cast.Unsigned && narrow:
			return unit.ReferenceFloat32(x), nil
		case o.From == cast.Unsigned:
			return unit.ReferenceFloat64(x), nil
		case narrow:
			return convert.ReferenceFloat32(x), nil
		}
		return float64(x), nil
	case float32:
		return float64(x), nil
	case float64:
		return convert.ReferenceFloat32(x), nil
	}
	return nil, rowvalue.UnexpectedValue(v)
}

// toInt64 returns v without its fraction.
func toInt64(v any, o cast.Op) (any, error) {
	whole, fits := int64(0), false
	switch x := v.(type) {
	case int64:
		whole, fits = x, x >= 0 // unsigned
	case float32:
		whole, fits = unit.ReferenceInt64(float64(x))
	case float64:
		whole, fits = unit.ReferenceInt64(x)
	default:
		return nil, rowvalue.UnexpectedValue(v)
	}
	switch {
	case fits:
		return whole, nil
	case o.Overflow == cast.Null:
		return nil, nil
	}
	return nil, fmt.Errorf("%w: %v is not within int64", rowvalue.ErrData, v)
}
