package image

import (
	"github.com/millrace/millrace/fpga/operator/cartesian"
	"github.com/millrace/millrace/fpga/operator/idlisttransform"
	"github.com/millrace/millrace/fpga/program"
)

// graphVector is a known answer for a graph: the pairs of two fields of binary rows, and what both hold. Every expected
// value is written down, none computed.
func graphVector() Vector {
	p := &program.Program{
		Source: program.CriteoBinary,
		Columns: []program.Column{
			{Name: "cat_0", Field: 14, Kind: program.Int64, Part: program.GraphFirst},
			{Name: "cat_1", Field: 15, Kind: program.Int64, Part: program.GraphNext},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{
				{Inputs: []uint32{0, 1}, Combine: cartesian.Op{MaxLength: 1}},
				{Inputs: []uint32{0, 1}, Combine: idlisttransform.Op{}},
			},
			Sinks: []program.GraphSink{
				{Value: 2, Sink: program.Sink{To: program.ToSparse}},
				{Value: 3, Sink: program.Sink{To: program.ToSparse, Index: 1}},
			},
		}},
		Output: program.Output{Keys: 2},
	}
	return packedVector("graph", p, []int{14, 15}, [][]uint32{{1, 10}, {2, 20}, {7, 7}}, packedAnswer{
		lengths: []uint32{1, 1, 1, 0, 0, 1},
		values:  []uint64{1<<64 - 2166060444645670163, 1<<64 - 7079278334846907209, 1<<64 - 7267561123229759680, 7},
	})
}
