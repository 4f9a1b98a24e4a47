package stock

import (
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/enumerate"
	"github.com/millrace/millrace/fpga/operator/scores"
	"github.com/millrace/millrace/fpga/operator/withscores"
	"github.com/millrace/millrace/fpga/program"
)

// scoredVector is a known answer for ids with scores: two fields of binary rows, an id and a score. Every expected
// value is written down, none computed.
func scoredVector() image.Vector {
	key := func(value, index uint32, scored bool) program.GraphSink {
		return program.GraphSink{Value: value, Sink: program.Sink{To: program.ToSparse, Index: index}, Scored: scored}
	}
	p := &program.Program{
		Source: program.CriteoBinary,
		Columns: []program.Column{
			{Name: "cat_0", Field: 14, Kind: program.Int64, Part: program.GraphFirst},
			{Name: "int_0", Field: 1, Kind: program.Int64, Part: program.GraphNext},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{
				{Inputs: []uint32{1}, Ops: []program.Op{convert.Op{To: program.Float32}}},
				{Inputs: []uint32{0, 2}, Combine: withscores.Op{}},
				{Inputs: []uint32{3}, Combine: scores.Op{}},
				{Inputs: []uint32{0}, Combine: enumerate.Op{}},
				{Inputs: []uint32{1, 4}, Combine: withscores.Op{}},
			},
			Sinks: []program.GraphSink{key(3, 0, true), key(5, 1, true), key(6, 2, true), key(5, 3, false)},
		}},
		Output: program.Output{Keys: 4, Weights: true},
	}
	const minusFour = 0xfffffffc
	return packedVector("ids with scores", p, []int{14, 1}, [][]uint32{{7, 3}, {8, minusFour}}, packedAnswer{
		lengths: []uint32{1, 1, 1, 1, 1, 1, 1, 1},
		values:  []uint64{7, 8, 7, 8, 3, 1<<64 - 4, 7, 8},
		weights: []float32{3, -4, 0, 0, 3, -4, 1, 1},
	})
}
