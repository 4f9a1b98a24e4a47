package processor

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// preparedPipeline is a lowered pipeline as a processor runs it.
type preparedPipeline struct {
	program *slicer.Program
	schema  *tensor.Schema
	leaves  []string // paths of the leaves that the program reads
}

// preparePipeline makes a program ready for a target, and checks that schema describes the program's output.
func preparePipeline(prog *program.Program, schema *tensor.Schema, limits target.Limits) (*preparedPipeline, error) {
	prepared, err := slicer.Prepare(prog, limits)
	if err != nil {
		return nil, err
	}
	if err := checkSchema(prog.Output, schema); err != nil {
		return nil, err
	}
	p := &preparedPipeline{program: prepared, schema: schema}
	for i := range prog.Columns {
		p.leaves = append(p.leaves, prog.Columns[i].Name)
	}
	return p, nil
}

// checkSchema checks that a schema describes a program's output.
func checkSchema(out program.Output, s *tensor.Schema) error {
	if err := s.Validate(); err != nil {
		return err
	}
	ids := tensor.Int64
	if out.IDs == program.IDs32 {
		ids = tensor.Int32
	}
	dense := tensor.Float32
	if out.DenseType == program.DenseBFloat16 {
		dense = tensor.BFloat16
	}
	switch {
	case out.Dense > 0 && dense != s.DenseDType():
		return fmt.Errorf("%w: the program's dense is %v, the schema's is %v", tensor.ErrShape, dense, s.DenseDType())
	case out.Label != s.Label, int(out.Dense) != len(s.Dense), int(out.Keys) != len(s.Keys), out.Weights != s.Weights,
		out.Keys > 0 && (ids != s.IDs || out.Fixed != s.Fixed()):
		return fmt.Errorf("%w: the program's output (label %t, %d dense, %d keys of %v, fixed %t) "+
			"is not the schema's (label %t, %d dense, %d keys of %v, fixed %t)",
			tensor.ErrShape, out.Label, out.Dense, out.Keys, out.IDs, out.Fixed,
			s.Label, len(s.Dense), len(s.Keys), s.IDs, s.Fixed())
	}
	return nil
}
