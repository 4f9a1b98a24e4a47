package wire_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/onehot"
	"github.com/millrace/millrace/fpga/program"
)

// hotColumns is a program with classes of ids and of real numbers.
func hotColumns() *program.Program {
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{{Name: "id", Kind: program.Int64, Sinks: []program.Sink{
			{To: program.ToDense, Ops: []program.Op{onehot.Op{Classes: 3}}},
			{
				To:    program.ToDense,
				Index: 3,
				Ops:   []program.Op{convert.Op{To: program.Float32}, onehot.Op{Classes: 2, Ranges: true, Lower: -1, Upper: 1}},
			},
		}}},
		Output: program.Output{Dense: 5},
	}
}

func TestOneHotThatIsRefused(t *testing.T) {
	hot := func(o onehot.Op) func(p *program.Program) {
		return func(p *program.Program) { p.Columns[0].Sinks[0].Ops = []program.Op{o} }
	}
	ranges := func(lower, upper float32) func(p *program.Program) {
		return func(p *program.Program) {
			p.Columns[0].Sinks[1].Ops[1] = onehot.Op{Classes: 2, Ranges: true, Lower: lower, Upper: upper}
		}
	}
	infinite := float32(math.Inf(1))
	refused(t, hotColumns, whole, map[string]refusal[*program.Program]{
		"no class": {hot(onehot.Op{}), "onehot: 0 classes, want 1 to 4096"},
		"too many": {func(p *program.Program) {
			p.Output.Dense, p.Columns[0].Sinks[0].Ops[0] = 2*onehot.MaxClasses, onehot.Op{Classes: onehot.MaxClasses + 1}
		}, "onehot: 4097 classes, want 1 to 4096"},
		"bounds of ids":    {hot(onehot.Op{Classes: 3, Upper: 1}), "onehot: bounds 0 and 1 of ids"},
		"ids as numbers":   {hot(onehot.Op{Classes: 3, Ranges: true, Upper: 1}), "onehot does not take int64"},
		"one width":        {ranges(1, 1), "a range from 1 to 1"},
		"no width":         {ranges(0, 0x1p-149), "want finite numbers that ascend"},
		"an infinity":      {ranges(0, infinite), "want finite numbers that ascend"},
		"too wide a range": {ranges(-math.MaxFloat32, math.MaxFloat32), "want finite numbers that ascend"},
		"no number":        {ranges(infinite-infinite, 1), "want finite numbers that ascend"},
		"an operator behind": {func(p *program.Program) {
			p.Columns[0].Sinks[0].Ops = []program.Op{onehot.Op{Classes: 3}, log.Op{}}
		},
			"onehot: is not the last of a dense column"},
		"a label": {func(p *program.Program) {
			p.Output.Label, p.Output.Dense = true, 2
			p.Columns[0].Sinks[0].To, p.Columns[0].Sinks[1].Index = program.ToLabel, 0
		}, "onehot: is not the last of a dense column"},
		"beyond dense": {func(p *program.Program) { p.Output.Dense = 4 }, "the output has 4 dense columns"},
		"overlapping":  {func(p *program.Program) { p.Columns[0].Sinks[1].Index = 2 }, "the dense column is written twice"},
	})
	p := graphProgram()
	p.Graphs[1].Steps[0].Ops = []program.Op{onehot.Op{Classes: 1}}
	require.ErrorContains(t, p.Validate(), "onehot in a step: it makes dense columns")
}
