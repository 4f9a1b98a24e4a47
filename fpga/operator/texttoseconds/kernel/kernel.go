// Package kernel makes the operator text_to_seconds ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/texttoseconds"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/texttoseconds"
)

// Unit is the unit that computes the operator.
const Unit = texttoseconds.Unit

// step turns texts of times into seconds.
type step struct{ zone unit.Zone }

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	o := op.(texttoseconds.Op)
	return &step{unit.Zone{Known: o.Assumes, Offset: o.Offset}}, nil
}

// Run implements block.Step. An empty text becomes a null.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	return b.ReadTexts(v, func(dst []int64, offsets []uint32, data, valid []byte) error {
		return unit.Seconds(dst, offsets, data, valid, s.zone)
	})
}
