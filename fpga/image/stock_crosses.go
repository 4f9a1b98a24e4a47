package image

import (
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/hashbucket"
	"github.com/millrace/millrace/fpga/operator/hashcross"
	"github.com/millrace/millrace/fpga/operator/onehot"
	"github.com/millrace/millrace/fpga/operator/unsignedmodulus"
	"github.com/millrace/millrace/fpga/program"
)

// crossVector is a known answer for the hashes of buckets: two fields of binary rows, hashed together and alone,
// and for the classes of one. Every expected value is written down, none computed.
func crossVector() Vector {
	p := &program.Program{
		Source: program.CriteoBinary,
		Columns: []program.Column{
			{Name: "cat_0", Field: 14, Kind: program.Int64, Part: program.GraphFirst},
			{Name: "cat_1", Field: 15, Kind: program.Int64, Part: program.GraphNext},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{{Inputs: []uint32{0, 1}, Combine: hashcross.Op{Buckets: 1000}}},
			Sinks: []program.GraphSink{
				{Value: 2, Sink: program.Sink{To: program.ToSparse}},
				{Value: 0, Sink: program.Sink{To: program.ToSparse, Index: 1,
					Ops: []program.Op{hashbucket.Op{Buckets: 1000}}}},
				{Value: 0, Sink: program.Sink{To: program.ToSparse, Index: 2, Ops: []program.Op{
					clamp.Op{IntLo: -1, IntHi: -1}, unsignedmodulus.Op{M: 10}}}},
				{Value: 1, Sink: program.Sink{To: program.ToDense, Ops: []program.Op{onehot.Op{Classes: 2}}}},
			},
		}},
		Output: program.Output{Dense: 2, Keys: 3, Fixed: true},
	}
	return packedVector("buckets", p, []int{14, 15}, [][]uint32{{1, 2}, {2, 1}, {1, 1}}, packedAnswer{
		// pandas' hashes of 1 and 2 are 6238072747940578789 and 15839785061582574730.
		// The bits of -1 are those of 18446744073709551615.
		values: []uint64{191, 191, 0, 789, 730, 789, 5, 5, 5},
		dense:  []float32{0, 0, 0, 1, 0, 1}, // 2 is neither of the classes 0 and 1
	})
}
