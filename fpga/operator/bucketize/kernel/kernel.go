// Package kernel makes the operator bucketize ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/bucketize"
)

// Unit is the unit that computes the operator.
const Unit = bucketize.Unit

// step replaces numbers by the numbers of their buckets.
type step struct {
	kind       program.Kind
	table      *unit.Table
	rejectsNaN bool // A NaN is an error, so none may stand where a value is null.
}

// Compile makes the operator ready.
func Compile(op program.Op, in program.Kind, t *block.Tables) (block.Step, error) {
	o := op.(*bucketize.Op)
	table, err := block.Once(t, o, func() (*unit.Table, error) { return unit.New(Params(o)) })
	return &step{in, table, o.NaN == bucketize.NaNError && in != program.Int64}, err
}

// Params returns the operator's parameters as the unit takes them.
func Params(o *bucketize.Op) unit.Params {
	p := unit.Params{Borders: o.Borders32, Borders64: o.Borders64, BordersI64: o.BordersInt}
	switch {
	case len(o.Borders64) > 0:
		p.Compare = unit.CompareFloat64
	case len(o.BordersInt) > 0:
		p.Compare = unit.CompareInt64
	}
	if o.Side == bucketize.Right {
		p.Side = unit.SideRight
	}
	switch o.NaN {
	case bucketize.NaNFirst:
		p.NaN = unit.NaNFirst
	case bucketize.NaNLast:
		p.NaN = unit.NaNLast
	case bucketize.NaNError:
		p.NaN = unit.NaNFail
	}
	return p
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	if s.rejectsNaN && v.Valid != nil {
		// An operator may have made a NaN of the 0 that stands for a null. Only the NaN of a value is an error.
		b.OwnValues(v)
		clearNulls(v)
	}
	dst := b.IntDestination(v.Count)
	var err error
	switch s.kind {
	case program.Int64:
		err = s.table.Int64(dst, v.Int64s)
	case program.Float32:
		err = s.table.Float32(dst, v.Float32s)
	default:
		err = s.table.Float64(dst, v.Float64s)
	}
	v.Kind, v.Int64s, v.Float32s, v.Float64s, v.OwnsValues = program.Int64, dst, nil, nil, true
	return err
}

// clearNulls sets nulls to 0.
func clearNulls(v *block.Values) {
	for i, ok := range v.Valid {
		if ok == 0 {
			if v.Kind == program.Float32 {
				v.Float32s[i] = 0
			} else {
				v.Float64s[i] = 0
			}
		}
	}
}
