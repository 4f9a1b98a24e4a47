package image

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	"github.com/millrace/millrace/fpga/operator/boxcox"
	"github.com/millrace/millrace/fpga/operator/fillnan"
	"github.com/millrace/millrace/fpga/operator/logit"
	"github.com/millrace/millrace/fpga/operator/minmax"
	"github.com/millrace/millrace/fpga/operator/normalize"
	"github.com/millrace/millrace/fpga/program"
)

// realsVector is a known answer for the operators of real numbers: a Parquet page of two float32, each operator in a
// dense column of its own.
func realsVector() Vector {
	const rows = 2
	p := &program.Program{Source: program.Parquet, Columns: []program.Column{{Name: "x", Kind: program.Float32}}}
	// Each operator with its results for 0.25 and 9, as the textbook has them, rounded to nearest.
	answers := []struct {
		ops  []program.Op
		want [rows]uint32
	}{
		// -ln 3, and ln 3 as 9 is clamped to 0.75
		{[]program.Op{logit.Op{Eps: 0.25}}, [rows]uint32{0xbf8c9f54, 0x3f8c9f54}},
		// 2 (sqrt x - 1)
		{[]program.Op{boxcox.Op{Lambda1: 0.5}}, [rows]uint32{0xbf800000, 0x40800000}},
		// -2 ln 2, 2 ln 3
		{[]program.Op{boxcox.Op{Mode: boxcox.RAP}}, [rows]uint32{0xbfb17218, 0x400c9f54}},
		// 0.05, 8.9 / 3
		{[]program.Op{normalize.Op{Mean: 0.1, Deviation: 3}}, [rows]uint32{0x3d4ccccd, 0x403dddde}},
		{[]program.Op{minmax.Op{Min: -0.75, Max: 2.25}}, [rows]uint32{0x3eaaaaab, 0x40500000}}, // 1/3, 3.25
		// The logit of 9 is a NaN.
		{[]program.Op{logit.Op{Eps: -1}, fillnan.Op{Value: 2}}, [rows]uint32{0xbf8c9f54, 0x40000000}},
	}
	le := binary.LittleEndian
	p.Output.Dense = uint32(len(answers))
	place := p.Output.Layout(rows)
	out := make([]byte, place.Values)
	for i, a := range answers {
		p.Columns[0].Sinks = append(p.Columns[0].Sinks, program.Sink{To: program.ToDense, Index: uint32(i),
			Ops: a.ops})
		for row, bits := range a.want {
			le.PutUint32(out[place.Dense+uint64(4*(row*len(answers)+i)):], bits)
		}
	}
	input := dataPage(le.AppendUint32(le.AppendUint32(nil, math.Float32bits(0.25)), math.Float32bits(9)), rows)
	body := p.Marshal()
	slice := &program.Slice{
		Digest: sha256.Sum256(body), Program: uint64(len(body)), Rows: rows, Layout: place,
		Tasks: []program.Task{{Count: rows, Chunk: program.ChunkType{Physical: 4, Values: rows},
			Window: program.Span{Len: uint64(len(input))}, ChunkLen: uint64(len(input))}},
	}
	return Vector{
		Name: "real numbers", Units: unitsOf(p), Program: body, Input: input, Args: slice.Marshal(), Scratch: 4096,
		Dict: 4096, State: uint64(program.Done), Output: out,
	}
}
