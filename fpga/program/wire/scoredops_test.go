package wire_test

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/enumerate"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/idlisttransform"
	"github.com/millrace/millrace/fpga/operator/listslice"
	"github.com/millrace/millrace/fpga/operator/ngram"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/operator/scores"
	"github.com/millrace/millrace/fpga/operator/withscores"
	"github.com/millrace/millrace/fpga/program"
)

// scoredLists is a program with ids that have scores.
func scoredLists() *program.Program {
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "ids.list.element", Kind: program.Int64, List: true, Part: program.GraphFirst},
			{Name: "score", Kind: program.Float32, Part: program.GraphNext},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{
				{Inputs: []uint32{0}, Combine: enumerate.Op{}, Ops: []program.Op{firstx.Op{N: 3}}},
				{Inputs: []uint32{0, 1}, Combine: withscores.Op{}},
				{Inputs: []uint32{2}, Ops: []program.Op{positivemodulus.Op{M: 10}}},
				{Inputs: []uint32{4}, Combine: scores.Op{}},
				{Inputs: []uint32{0, 5}, Combine: withscores.Op{}},
				{Inputs: []uint32{3, 0}, Combine: idlisttransform.Op{}},
			},
			Sinks: []program.GraphSink{
				{Value: 2, Sink: program.Sink{To: program.ToSparse}, Scored: true},
				{Value: 3, Sink: program.Sink{To: program.ToSparse, Index: 1}, Scored: true},
				{Value: 6, Sink: program.Sink{To: program.ToSparse, Index: 2, Ops: []program.Op{ngram.Op{N: 2}}}},
				{Value: 7, Sink: program.Sink{To: program.ToSparse, Index: 3}},
			},
		}},
		Output: program.Output{Keys: 4, Weights: true},
	}
}

func TestScoredListsThatAreRefused(t *testing.T) {
	refused(t, scoredLists, firstGraph, map[string]refusal[*program.Graph]{
		"positions of real numbers": {func(g *program.Graph) { g.Steps[0].Inputs[0] = 1 },
			"enumerate does not take [float32]"},
		"scores of plain ids": {func(g *program.Graph) { g.Steps[3].Inputs[0] = 0 },
			"scores does not take [list<int64>]"},
		"scores that are ids": {func(g *program.Graph) { g.Steps[1].Inputs[1] = 0 },
			"with_scores does not take [list<int64> list<int64>]"},
		"three inputs": {func(g *program.Graph) { g.Steps[1].Inputs = []uint32{0, 1, 1} },
			"with_scores does not take [list<int64> float32 float32]"},
		"ids that move in a step": {func(g *program.Graph) { g.Steps[0].Ops[0] = ngram.Op{N: 2} },
			"step 0: ngram of scored ids"},
		"ids that move in a sink": {func(g *program.Graph) {
			g.Sinks[0].Sink.Ops = []program.Op{listslice.Op{End: 2}}
		},
			"sink 0 (sparse 0): list_slice of scored ids"},
		"scored ids that become real": {func(g *program.Graph) {
			g.Steps[2].Ops[0] = convert.Op{To: program.Float32}
		},
			"step 2: scored ids become float32"},
		"weights of plain ids": {func(g *program.Graph) { g.Sinks[3].Scored = true },
			"sink 3 (sparse 3): takes scores of list<int64>, which has none"},
		"weights of nothing": {func(g *program.Graph) {
			g.Sinks[0].Scored, g.Sinks[1].Scored = false, false
		},
			"weights, and no scores to make them of"},
	})
	refused(t, scoredLists, whole, map[string]refusal[*program.Program]{
		"no weights": {func(p *program.Program) { p.Output.Weights = false }, "takes scores, which have no tensor"},
	})
}
