// Package kernel makes the operator hash_bytes ready to run over blocks.
package kernel

import (
	"fmt"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/hashbytes"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/hashbytes"
)

// Unit is the unit that computes the operator.
const Unit = hashbytes.Unit

// step turns strings of bytes into ids.
type step struct{ function unit.Function }

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	switch o := op.(hashbytes.Op); o.Function {
	case hashbytes.XXH3:
		return &step{unit.XXH3}, nil
	case hashbytes.Murmur3:
		return &step{unit.Murmur3}, nil
	case hashbytes.FarmHash:
		return &step{unit.FarmHash}, nil
	default:
		return nil, fmt.Errorf("%v is not a hash function of this engine", o.Function)
	}
}

// Run implements block.Step. A null stays null, and a list that holds a null becomes empty.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	dst := b.IntDestination(v.Count)
	if v.Count > 0 {
		if err := unit.Hash(dst, v.Offsets, v.Data, v.Valid, s.function); err != nil {
			return err
		}
	}
	v.Int64s = dst
	b.EndBytes(program.Int64, v)
	return nil
}
