// Package kernel makes the operator get_local_hour ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/getlocalhour"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/localhour"
)

// Unit is the unit that computes the operator.
const Unit = getlocalhour.Unit

// step replaces times by hours.
type step struct{ zone *unit.Zone }

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, t *block.Tables) (block.Step, error) {
	o := op.(*getlocalhour.Op)
	zone, err := block.Once(t, o, func() (*unit.Zone, error) { return unit.New(o.Starts, o.Offsets) })
	return &step{zone}, err
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	dst := b.IntDestination(v.Count)
	s.zone.Hours(dst, v.Int64s[:v.Count])
	v.Int64s, v.OwnsValues = dst, true
	return nil
}
