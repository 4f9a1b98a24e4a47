package image

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/millrace/millrace/fpga/program"
)

// crossVector is a known answer for the hashes of buckets: two fields of binary rows, hashed together and alone,
// and for the classes of one. Every expected value is written down, none computed.
func crossVector() Vector {
	const rows, fields = 3, 40
	p := &program.Program{
		Source: program.CriteoBinary,
		Columns: []program.Column{
			{Name: "cat_0", Field: 14, Kind: program.Int64, Part: program.GraphFirst},
			{Name: "cat_1", Field: 15, Kind: program.Int64, Part: program.GraphNext},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{{Inputs: []uint32{0, 1}, Combine: program.HashCross{Buckets: 1000}}},
			Sinks: []program.GraphSink{
				{Value: 2, Sink: program.Sink{To: program.ToSparse}},
				{Value: 0, Sink: program.Sink{To: program.ToSparse, Index: 1,
					Ops: []program.Op{program.HashBucket{Buckets: 1000}}}},
				{Value: 1, Sink: program.Sink{To: program.ToDense, Ops: []program.Op{program.OneHot{Classes: 2}}}},
			},
		}},
		Output: program.Output{Dense: 2, Keys: 2, Fixed: true},
	}
	le := binary.LittleEndian
	input := make([]byte, rows*fields*4)
	for row, pair := range [][2]uint32{{1, 2}, {2, 1}, {1, 1}} {
		le.PutUint32(input[4*(row*fields+14):], pair[0])
		le.PutUint32(input[4*(row*fields+15):], pair[1])
	}
	place := p.Output.Layout(rows)
	out := make([]byte, place.Values+2*rows*8)
	// pandas' hashes of 1 and 2 are 6238072747940578789 and 15839785061582574730.
	for i, bucket := range []uint64{191, 191, 0, 789, 730, 789} {
		le.PutUint64(out[place.Values+uint64(i)*8:], bucket)
	}
	for i, hot := range []uint32{0, 0, 0, 0x3f800000, 0, 0x3f800000} { // 2 is neither of the classes 0 and 1
		le.PutUint32(out[place.Dense+uint64(i)*4:], hot)
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
		Name: "buckets", Units: unitsOf(p), Program: body, Input: input, Args: slice.Marshal(), Scratch: 4096,
		State: uint64(program.Done), Output: out,
	}
}
