package image

import (
	"github.com/millrace/millrace/fpga/operator/computescore"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/program"
)

// scoresVector is a known answer for the comparison of ids: two fields of binary rows, which hold the same id and
// different ones, with scores of 3 and -4. Every expected value is written down, none computed.
func scoresVector() Vector {
	toFloat := []program.Op{convert.Op{To: program.Float32}}
	dense := func(value, column uint32) program.GraphSink {
		return program.GraphSink{Value: value, Sink: program.Sink{To: program.ToDense, Index: column}}
	}
	p := &program.Program{
		Source: program.CriteoBinary,
		Columns: []program.Column{
			{Name: "cat_0", Field: 14, Kind: program.Int64, Part: program.GraphFirst},
			{Name: "cat_1", Field: 15, Kind: program.Int64, Part: program.GraphNext},
			{Name: "int_0", Field: 1, Kind: program.Int64, Part: program.GraphNext},
			{Name: "int_1", Field: 2, Kind: program.Int64, Part: program.GraphNext},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{
				{Inputs: []uint32{2}, Ops: toFloat},
				{Inputs: []uint32{3}, Ops: toFloat},
				{Inputs: []uint32{0, 1}, Combine: computescore.Op{Function: computescore.Jaccard}},
				{Inputs: []uint32{0, 4, 1, 5}, Combine: computescore.Op{Function: computescore.Cosine}},
				{Inputs: []uint32{0, 1, 5}, Combine: computescore.Op{Function: computescore.Sum}},
			},
			Sinks: []program.GraphSink{dense(6, 0), dense(7, 1), dense(8, 2)},
		}},
		Output: program.Output{Dense: 3},
	}
	const minusFour = 0xfffffffc
	return packedVector("scores", p, []int{14, 15, 1, 2},
		[][]uint32{{5, 5, 3, minusFour}, {5, 6, 3, minusFour}},
		packedAnswer{dense: []float32{1, -1, -4, 0, 0, 0}})
}
