// Package kernel makes the operator int96_time ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/int96time"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/int96"
)

// Unit is the unit that computes the operator.
const Unit = int96time.Unit

// step turns timestamps of twelve bytes into integers.
type step struct{ unit unit.Unit }

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	if op.(int96time.Op).To == int96time.Days {
		return &step{unit.Days}, nil
	}
	return &step{unit.Seconds}, nil
}

// Run implements block.Step. A null stays null, and a list that holds a null becomes empty.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	dst := b.IntDestination(v.Count)
	if v.Count > 0 {
		if err := unit.ToTime(dst, v.Offsets, v.Data, v.Valid, s.unit); err != nil {
			return err
		}
	}
	v.Int64s = dst
	b.EndBytes(program.Int64, v)
	return nil
}
