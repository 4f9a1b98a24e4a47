// Package kernel makes the operator hex_to_int ready to run over blocks.
package kernel

import (
	"bytes"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/hextoint"
)

// Unit is the unit that computes the operator.
const Unit = hextoint.Unit

// step turns hexadecimal tokens into integers.
type step struct{}

// Compile makes the operator ready.
func Compile(_ program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	return step{}, nil
}

// Run implements block.Step. An empty token becomes a null. A list that held a null before becomes empty, and its
// tokens are not parsed. Tokens come straight from the decoder, so v's validity is never the chain's own yet.
func (step) Run(b *block.Buffers, v *block.Values) error {
	valid := block.Resize(&b.Valid, v.Count)
	drop := v.List && v.Valid != nil
	if v.Valid == nil {
		for i := range valid {
			valid[i] = 1
		}
	} else {
		copy(valid, v.Valid)
	}
	if drop {
		b.FlagNullLists(v)
		b.NullFlaggedLists(v, valid)
	}
	dst := block.Resize(&b.Int64s, v.Count)
	var err error
	if v.Count > 0 {
		err = unit.Hex(dst, v.Offsets, v.Data, valid)
	}
	v.Kind, v.Int64s, v.OwnsValues, v.Offsets, v.Data = program.Int64, dst, true, nil, nil
	v.Valid, v.OwnsValid = valid, true
	if err != nil {
		return err
	}
	if drop {
		b.RemoveFlaggedLists(v)
	}
	if bytes.IndexByte(v.Valid, 0) < 0 {
		v.Valid = nil
	}
	return nil
}
