package wire_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/operator/computescore"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/hashbucket"
	"github.com/millrace/millrace/fpga/operator/hashcross"
	"github.com/millrace/millrace/fpga/program"
)

// crosses is a program with the hashes of buckets.
func crosses() *program.Program {
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "a", Kind: program.Int64, Part: program.GraphFirst},
			{Name: "b", Kind: program.Int64, Part: program.GraphNext},
			{Name: "list.list.element", Kind: program.Int64, List: true, Sinks: []program.Sink{{To: program.ToSparse, Index: 1,
				Ops: []program.Op{hashbucket.Op{Buckets: math.MaxInt64}}}}},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{{Inputs: []uint32{0, 1, 0}, Combine: hashcross.Op{Buckets: 1000}}},
			Sinks: []program.GraphSink{
				{Value: 2, Sink: program.Sink{To: program.ToSparse, Ops: []program.Op{fillnull.Op{Int: 7}}}},
			},
		}},
		Output: program.Output{Keys: 2},
	}
}

func TestCrossesThatAreRefused(t *testing.T) {
	refused(t, crosses, whole, map[string]refusal[*program.Program]{
		"no bucket of several": {func(p *program.Program) { p.Graphs[0].Steps[0].Combine = hashcross.Op{} },
			"hash_cross: 0 buckets, want more than 0"},
		"no bucket of one": {func(p *program.Program) { p.Columns[2].Sinks[0].Ops[0] = hashbucket.Op{Buckets: -1} },
			"hash_bucket: -1 buckets, want more than 0"},
		"one input": {func(p *program.Program) { p.Graphs[0].Steps[0].Inputs = []uint32{0} },
			"hash_cross does not take [int64]"},
		"nine inputs": {func(p *program.Program) { p.Graphs[0].Steps[0].Inputs = make([]uint32, 9) },
			"9 inputs, want 1 to 8"},
		"a list": {func(p *program.Program) { p.Columns[1].List = true },
			"hash_cross does not take [int64 list<int64> int64]"},
		"real numbers": {func(p *program.Program) { p.Columns[0].Kind = program.Float32 },
			"hash_cross does not take [float32 int64 float32]"},
		"real numbers of one": {func(p *program.Program) { p.Columns[2].Kind = program.Float64 },
			"hash_bucket does not take float64"},
	})
}

// scoring is a program with the comparisons of lists.
func scoring() *program.Program {
	p := &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "a.list.element", Kind: program.Int64, List: true, Part: program.GraphFirst},
			{Name: "weights.list.element", Kind: program.Float32, List: true, Part: program.GraphNext},
			{Name: "b", Kind: program.Int64, Part: program.GraphNext},
			{Name: "w", Kind: program.Float32, Part: program.GraphNext},
		},
		Graphs: []program.Graph{{}},
	}
	g := &p.Graphs[0]
	for f := computescore.HasOverlap; f <= computescore.Max; f++ {
		s := program.Step{Inputs: []uint32{0, 2}, Combine: computescore.Op{Function: f}}
		switch len(f.Inputs()) {
		case 3:
			s.Inputs = append(s.Inputs, 3)
		case 4:
			s.Inputs, s.Combine = []uint32{0, 1, 2, 3}, computescore.Op{Function: f, ZeroNorm: computescore.ZeroNormZero}
		}
		g.Steps = append(g.Steps, s)
		g.Sinks = append(
			g.Sinks,
			program.GraphSink{Value: uint32(4 + f), Sink: program.Sink{To: program.ToDense, Index: uint32(f)}},
		)
		p.Output.Dense++
	}
	return p
}

func TestScoringThatIsRefused(t *testing.T) {
	assert.Equal(t, "function(8)", computescore.Function(8).String())
	steps := func(p *program.Program) []program.Step { return p.Graphs[0].Steps }
	refused(t, scoring, steps, map[string]refusal[[]program.Step]{
		"an unknown function": {func(s []program.Step) { s[0].Combine = computescore.Op{Function: 8} },
			"compute_score does not take [list<int64> int64]"},
		"an unknown norm": {func(s []program.Step) {
			s[4].Combine = computescore.Op{Function: computescore.Cosine, ZeroNorm: 2}
		},
			"compute_score: zero norm(2) is not a treatment of a norm of 0"},
		"a norm of counts": {func(s []program.Step) { s[1].Combine = computescore.Op{Function: 1, ZeroNorm: 1} },
			"compute_score: id_overlap_count has no norm that may be 0"},
		"too few": {func(s []program.Step) { s[5].Inputs = s[5].Inputs[:2] },
			"compute_score does not take [list<int64> int64]"},
		"too many": {func(s []program.Step) { s[0].Inputs = []uint32{0, 2, 2} }, "compute_score does not take"},
		"ids as scores": {func(s []program.Step) { slices.Reverse(s[5].Inputs) },
			"compute_score does not take [float32 int64 list<int64>]"},
	})
}
