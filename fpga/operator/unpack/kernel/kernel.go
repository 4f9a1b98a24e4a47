// Package kernel makes the operator unpack ready to run over blocks.
package kernel

import (
	"errors"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/unpack"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/unpack"
)

// Unit is the unit that computes the operator.
const Unit = unpack.Unit

// combiner makes numbers of bytes.
type combiner struct{}

// CompileCombiner makes the operator ready.
func CompileCombiner(program.Combiner, *block.Tables) (block.Combiner, error) { return combiner{}, nil }

// Combine implements block.Combiner.
func (combiner) Combine(to *block.GraphValue, inputs []*block.Values, _ int) error {
	in := inputs[0]
	lists := unit.Lists{Lengths: to.Lengths, Values: to.Float32s}
	err := lists.Float32s(in.Offsets, in.Data, in.Valid)
	to.SetReals(lists.Lengths, lists.Values)
	if value := (*unit.ValueError)(nil); errors.As(err, &value) {
		return &block.RowError{Row: value.Index, Err: err}
	}
	return err
}
