package image

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// tablesVector is a known answer for the operators with tables: Parquet pages of two integers each. Kathmandu's clocks
// have been 5:45 hours ahead of UTC since 1986, and 5:30 before.
func tablesVector() Vector {
	const rows = 2
	cases := []struct {
		name string
		op   program.Op
		in   [rows]int64
		out  [rows]int64
	}{
		{"hour", &program.LocalHour{Starts: []int64{math.MinInt64, 504901800}, Offsets: []int64{19800, 20700}},
			[rows]int64{1700000000, -1}, [rows]int64{3, 5}},
		{"pairs", &program.MapID{Keys: []int64{-5, 10}, Values: []int64{2, 1}, Default: 9}, [rows]int64{-5, 11},
			[rows]int64{2, 9}},
		{"list", &program.MapID{Values: []int64{10, 11, 12, 13}}, [rows]int64{3, -1}, [rows]int64{13, 0}},
	}
	p := &program.Program{
		Source: program.Parquet,
		Output: program.Output{Keys: uint32(len(cases)), IDs: program.IDs64, Fixed: true},
	}
	place := p.Output.Layout(rows)
	le := binary.LittleEndian
	var input []byte
	out := make([]byte, place.Values)
	slice := &program.Slice{Rows: rows, Layout: place, ValueCap: uint64(len(cases)) * rows}
	for i, c := range cases {
		p.Columns = append(p.Columns, program.Column{Name: c.name, Kind: program.Int64,
			Sinks: []program.Sink{{To: program.ToSparse, Index: uint32(i), Ops: []program.Op{c.op}}}})
		var values []byte
		for row, x := range c.in {
			values = le.AppendUint64(values, uint64(x))
			out = le.AppendUint64(out, uint64(c.out[row]))
		}
		page := dataPage(values, rows)
		window := program.Span{Off: uint64(len(input)), Len: uint64(len(page))}
		input = append(input, page...)
		slice.Tasks = append(slice.Tasks, program.Task{Column: uint32(i), Count: rows,
			Chunk: program.ChunkType{Physical: 2, Values: rows}, Window: window, ChunkLen: window.Len})
	}
	body := p.Marshal()
	slice.Digest, slice.Program = sha256.Sum256(body), uint64(len(body))
	return Vector{
		Name: "tables", Units: unitsOf(p), Program: body, Input: input, Args: slice.Marshal(), Scratch: 4096,
		Dict: 4096, State: uint64(program.Done), Output: out,
	}
}
