// Package reference computes bucketize by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/bucketize"
)

// Unit is the operator's unit.
const Unit = bucketize.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(*bucketize.Op)
	side := map[bucketize.Side]unit.Side{bucketize.Left: unit.SideLeft, bucketize.Right: unit.SideRight}[o.Side]
	nan := map[bucketize.NaN]unit.NaN{bucketize.NaNTorchArrow: unit.NaNTorchArrow, bucketize.NaNFirst: unit.NaNFirst,
		bucketize.NaNLast: unit.NaNLast, bucketize.NaNError: unit.NaNFail}[o.NaN]
	return rowvalue.OfValues(func(v any) (any, error) {
		var bucket int64
		var ok bool
		switch x := v.(type) {
		case int64:
			bucket, ok = unit.Reference(x, o.BordersInt, side, nan)
		case float32:
			bucket, ok = unit.Reference(x, o.Borders32, side, nan)
		case float64:
			bucket, ok = unit.Reference(x, o.Borders64, side, nan)
		default:
			return nil, rowvalue.UnexpectedValue(v)
		}
		if !ok {
			return nil, fmt.Errorf("%w: a NaN", rowvalue.ErrData)
		}
		return bucket, nil
	}), nil
}
