package image

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/millrace/millrace/fpga/program"
)

// graphVector is a known answer for a graph: the pairs of two fields of binary rows, and what both hold. Every expected
// value is written down, none computed.
func graphVector() Vector {
	const rows, fields = 3, 40
	p := &program.Program{
		Source: program.CriteoBinary,
		Columns: []program.Column{
			{Name: "cat_0", Field: 14, Kind: program.Int64, Part: program.GraphFirst},
			{Name: "cat_1", Field: 15, Kind: program.Int64, Part: program.GraphNext},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{
				{Inputs: []uint32{0, 1}, Combine: program.Cartesian{MaxLength: 1}},
				{Inputs: []uint32{0, 1}, Combine: program.IDListTransform{}},
			},
			Sinks: []program.GraphSink{
				{Value: 2, Sink: program.Sink{To: program.ToSparse}},
				{Value: 3, Sink: program.Sink{To: program.ToSparse, Index: 1}},
			},
		}},
		Output: program.Output{Keys: 2},
	}
	le := binary.LittleEndian
	input := make([]byte, rows*fields*4)
	for row, pair := range [][2]uint32{{1, 10}, {2, 20}, {7, 7}} {
		le.PutUint32(input[4*(row*fields+14):], pair[0])
		le.PutUint32(input[4*(row*fields+15):], pair[1])
	}
	place := p.Output.Layout(rows)
	out := make([]byte, place.Values+2*rows*8)
	for i, length := range []uint32{1, 1, 1, 0, 0, 1} {
		le.PutUint32(out[place.Lengths+uint64(i)*4:], length)
	}
	for i, id := range []int64{-2166060444645670163, -7079278334846907209, -7267561123229759680, 7} {
		le.PutUint64(out[place.Values+uint64(i)*8:], uint64(id))
	}
	body := p.Marshal()
	slice := &program.Slice{
		Digest: sha256.Sum256(body), Program: uint64(len(body)), Rows: rows, Layout: place, ValueCap: 2 * rows,
		Tasks: []program.Task{{
			Count: rows, Window: program.Span{Len: uint64(len(input))}, ChunkLen: uint64(len(input)),
			Scratch: program.Span{Len: 4096},
		}},
	}
	return Vector{
		Name: "graph", Units: unitsOf(p), Program: body, Input: input, Args: slice.Marshal(), Scratch: 4096,
		State: uint64(program.Done), Output: out,
	}
}
