package stock

import (
	"encoding/binary"
	"math"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/program"
)

// packedAnswer is what a program is expected to make of packed rows: the lengths of lists and the floats of dense
// columns, in the order of the output, and the values of one key after the other, with their weights.
type packedAnswer struct {
	lengths []uint32
	dense   []float32
	values  []uint64
	weights []float32
}

// packedVector is a known answer for rows of 40 numbers, as Criteo's packed files have them. rows has the numbers of
// the given fields; all other numbers are 0.
func packedVector(name string, p *program.Program, fields []int, rows [][]uint32, answer packedAnswer) image.Vector {
	const rowFields = 40
	le := binary.LittleEndian
	count, keys := uint32(len(rows)), uint64(p.Output.Keys)
	input := make([]byte, len(rows)*rowFields*4)
	for row, numbers := range rows {
		for i, field := range fields {
			le.PutUint32(input[4*(row*rowFields+field):], numbers[i])
		}
	}
	out := make([]byte, p.Output.Size(count, keys*uint64(count)))
	place, _ := p.Output.LayoutIn(count, uint64(len(out)))
	for i, length := range answer.lengths {
		le.PutUint32(out[place.Lengths+uint64(i)*4:], length)
	}
	for i, x := range answer.dense {
		le.PutUint32(out[place.Dense+uint64(i)*4:], math.Float32bits(x))
	}
	for i, value := range answer.values {
		le.PutUint64(out[place.Values+uint64(i)*8:], value)
	}
	for i, weight := range answer.weights {
		le.PutUint32(out[place.Weights+uint64(i)*4:], math.Float32bits(weight))
	}
	slice := &program.Slice{
		Rows: count, Layout: place, ValueCap: keys * uint64(count),
		Tasks: []program.Task{{
			Count: count, Window: program.Span{Len: uint64(len(input))}, ChunkLen: uint64(len(input)),
			Scratch: program.Span{Len: 4096},
		}},
	}
	v := image.ProgramVector(name, p, slice, input, out)
	v.Dict = 0 // rows have no dictionary
	return v
}
