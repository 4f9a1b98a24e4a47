// Package kernel makes the operator hash_cross ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/hashcross"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/hashcross"
)

// Unit is the unit that computes the operator.
const Unit = hashcross.Unit

// combiner hashes the ids of a row together.
type combiner struct{ hasher unit.Hasher }

// CompileCombiner makes the operator ready.
func CompileCombiner(c program.Combiner, _ *block.Tables) (block.Combiner, error) {
	hasher, err := unit.New(c.(hashcross.Op).Buckets)
	return &combiner{hasher}, err
}

// Combine implements block.Combiner.
func (c *combiner) Combine(to *block.GraphValue, inputs []*block.Values, rows int) error {
	to.BeginScalars(rows, inputs...)
	var columns [program.MaxInputs][]int64
	for i, in := range inputs {
		columns[i] = in.Int64s
	}
	c.hasher.Cross(to.Int64s, columns[:len(inputs)])
	return nil
}
