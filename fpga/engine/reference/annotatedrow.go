package reference

import (
	"fmt"
	"math"
	"math/big"

	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/decimal"
	"github.com/millrace/millrace/fpga/operator/int96time"
	"github.com/millrace/millrace/fpga/operator/rescale"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/parquetcolumn"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// bringRow converts a row of a leaf to the kind of a column that is read by annotations.
func bringRow(c *program.Column, l *format.Leaf, row any) (any, error) {
	list, isList := row.([]any)
	if !isList {
		return bringValue(c, l, row)
	}
	out := make([]any, len(list))
	for i := range list {
		var err error
		if out[i], err = bringValue(c, l, list[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// bringValue converts one value as bringRow does.
func bringValue(c *program.Column, l *format.Leaf, v any) (any, error) {
	annotation := parquetcolumn.AnnotationOf(l)
	if v == nil || annotation == program.AnnotatedNull {
		return nil, nil
	}
	if c.Kind == program.Bytes {
		return v, nil
	}
	if c.Reading == program.ReadSeconds {
		if value, ok := v.([]byte); ok {
			return evaluateScalar(int96time.Op{To: int96time.Seconds}, value)
		}
		multiplier, divisor, _ := annotation.Unit()
		return evaluateScalar(rescale.Op{Multiplier: multiplier, Divisor: divisor}, v)
	}
	if scale, ok := annotation.Decimal(); ok {
		return evaluateScalar(decimal.Op{Scale: scale, To: c.Kind}, v)
	}
	switch x := v.(type) {
	case float32:
		return bringReal(c.Kind, float64(x))
	case float64:
		return bringReal(c.Kind, x)
	case int64:
		if l.Unsigned && l.Physical == format.Int64 && c.Kind == program.Float64 {
			return float64(uint64(x)), nil
		}
		if l.Unsigned && l.Physical == format.Int64 && c.Kind == program.Float32 {
			return float32(uint64(x)), nil
		}
		if c.Kind != program.Int64 {
			return evaluateScalar(convert.Op{To: c.Kind}, x)
		}
	}
	return v, nil
}

// bringReal converts a real number to a kind.
func bringReal(to program.Kind, x float64) (any, error) {
	switch to {
	case program.Float32:
		return evaluateScalar(convert.Op{To: to}, x)
	case program.Float64:
		return x, nil
	}
	n, accuracy := int64(0), big.Below
	if !math.IsNaN(x) {
		n, accuracy = big.NewFloat(x).Int64()
	}
	if accuracy != big.Exact || n <= -1<<53 || n >= 1<<53 {
		return nil, fmt.Errorf("%w: the real number %v is not an id: ids kept as real numbers are whole and below 2^53",
			ErrData, x)
	}
	return n, nil
}
