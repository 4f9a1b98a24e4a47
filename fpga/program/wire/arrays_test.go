package wire_test

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/fixedlength"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/unpack"
	"github.com/millrace/millrace/fpga/program"
)

// unpackedArrays is a program whose graph makes dense columns of lists.
func unpackedArrays() *program.Program {
	return &program.Program{
		Source:  program.Parquet,
		Columns: []program.Column{{Name: "embedding", Kind: program.Bytes, Part: program.GraphFirst}},
		Graphs: []program.Graph{{
			Steps: []program.Step{{Inputs: []uint32{0}, Combine: unpack.Op{Type: unpack.Float32}}},
			Sinks: []program.GraphSink{{Value: 1, Sink: program.Sink{To: program.ToDense, Ops: []program.Op{
				log.Op{Add: 1}, fixedlength.Op{Length: 2}}}}},
		}},
		Output: program.Output{Dense: 2},
	}
}

func TestUnpackedArraysThatAreRefused(t *testing.T) {
	refused(t, unpackedArrays, whole, map[string]refusal[*program.Program]{
		"another type": {func(p *program.Program) { p.Graphs[0].Steps[0].Combine = unpack.Op{Type: 2} },
			"type(2) is not a type of packed numbers"},
		"no type": {func(p *program.Program) { p.Graphs[0].Steps[0].Combine = unpack.Op{} },
			"type(0) is not a type of packed numbers"},
		"numbers":       {func(p *program.Program) { p.Columns[0].Kind = program.Int64 }, "unpack does not take [int64]"},
		"lists":         {func(p *program.Program) { p.Columns[0].List = true }, "unpack does not take [list<bytes>]"},
		"no end":        {func(p *program.Program) { p.Graphs[0].Sinks[0].Sink.Ops = nil }, "a list cannot be dense"},
		"fewer columns": {func(p *program.Program) { p.Output.Dense = 1 }, "the output has 1 dense columns"},
		"an end of a step": {func(p *program.Program) {
			p.Graphs[0].Steps[0].Ops = []program.Op{fixedlength.Op{Length: 2}}
		}, "in a step: it makes dense columns"},
	})
}
