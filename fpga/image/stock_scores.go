package image

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// scoresVector is a known answer for the comparison of ids: two fields of binary rows, which hold the same id and
// different ones, with scores of 3 and -4. Every expected value is written down, none computed.
func scoresVector() Vector {
	const rows, fields = 2, 40
	toFloat := []program.Op{program.Convert{To: program.Float32}}
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
				{Inputs: []uint32{0, 1}, Combine: program.ComputeScore{Function: program.ScoreJaccard}},
				{Inputs: []uint32{0, 4, 1, 5}, Combine: program.ComputeScore{Function: program.ScoreCosine}},
				{Inputs: []uint32{0, 1, 5}, Combine: program.ComputeScore{Function: program.ScoreSum}},
			},
			Sinks: []program.GraphSink{dense(6, 0), dense(7, 1), dense(8, 2)},
		}},
		Output: program.Output{Dense: 3},
	}
	le := binary.LittleEndian
	input := make([]byte, rows*fields*4)
	for row, pair := range [][2]uint32{{5, 5}, {5, 6}} {
		at := 4 * row * fields
		le.PutUint32(input[at+4*14:], pair[0])
		le.PutUint32(input[at+4*15:], pair[1])
		le.PutUint32(input[at+4*1:], 3)
		le.PutUint32(input[at+4*2:], 0xfffffffc) // -4
	}
	place := p.Output.Layout(rows)
	out := make([]byte, place.Values)
	for i, score := range []float32{1, -1, -4, 0, 0, 0} {
		le.PutUint32(out[place.Dense+uint64(i)*4:], math.Float32bits(score))
	}
	body := p.Marshal()
	slice := &program.Slice{
		Digest: sha256.Sum256(body), Program: uint64(len(body)), Rows: rows, Layout: place,
		Tasks: []program.Task{{
			Count: rows, Window: program.Span{Len: uint64(len(input))}, ChunkLen: uint64(len(input)),
			Scratch: program.Span{Len: 4096},
		}},
	}
	return Vector{
		Name: "scores", Units: unitsOf(p), Program: body, Input: input, Args: slice.Marshal(), Scratch: 4096,
		State: uint64(program.Done), Output: out,
	}
}
