package image

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/wasm"
	"github.com/millrace/millrace/fpga/program"
)

// Call is a function of a module with known answers: the bits of its inputs and of its values, row by row.
type Call struct {
	Function wasm.Op
	In       [][]uint64 // In has for each row the values of each input.
	Out      []uint64   // Out has a value for each row.
}

// Vector returns a known answer that calls the function for all rows. An int64 is compared as an id, a float32 as a
// dense value, and a float64 as the float32 that is nearest to it, ties to even, since mini-batches hold no float64.
func (c *Call) Vector(name string) Vector {
	v, place := c.vectorOfCall(name)
	le := binary.LittleEndian
	for row, bits := range c.Out {
		switch c.Function.Out {
		case program.Int64:
			le.PutUint32(v.Output[place.Lengths+uint64(row)*4:], 1)
			le.PutUint64(v.Output[place.Values+uint64(row)*8:], bits)
			continue
		case program.Float64:
			x := math.Float64frombits(bits)
			bits = uint64(math.Float32bits(float32(x)))
			if x != x {
				bits = 0x7fc00000
			}
		}
		le.PutUint32(v.Output[place.Dense+uint64(row)*4:], uint32(bits))
	}
	return v
}

// TrapVector returns a known answer that demands that the function traps for the rows: nothing is put out.
func (c *Call) TrapVector(name string) Vector {
	v, _ := c.vectorOfCall(name)
	v.State = uint64(program.BadData)
	return v
}

// vectorOfCall returns a vector without what it puts out: a Parquet column of one page for each input, and one graph.
func (c *Call) vectorOfCall(name string) (Vector, program.OutputLayout) {
	rows := uint32(len(c.In))
	p := &program.Program{Source: program.Parquet}
	step := program.Step{Combine: c.Function}
	slice := &program.Slice{Rows: rows}
	var input []byte
	for i, kind := range c.Function.Inputs() {
		part := program.GraphNext
		if i == 0 {
			part = program.GraphFirst
		}
		p.Columns = append(p.Columns, program.Column{Name: fmt.Sprintf("input_%d", i), Kind: kind, Part: part})
		step.Inputs = append(step.Inputs, uint32(i))
		values, physical := make([]byte, 0, 8*rows), uint8(5)
		for _, row := range c.In {
			switch kind {
			case program.Float32:
				values, physical = binary.LittleEndian.AppendUint32(values, uint32(row[i])), 4
			case program.Int64:
				physical = 2
				fallthrough
			default:
				values = binary.LittleEndian.AppendUint64(values, row[i])
			}
		}
		page := DataPage(values, int(rows))
		window := program.Span{Off: uint64(len(input)), Len: uint64(len(page))}
		input = append(input, page...)
		slice.Tasks = append(slice.Tasks, program.Task{Column: uint32(i), Count: rows,
			Chunk:  program.ChunkType{Physical: physical, Values: uint64(rows)},
			Window: window, ChunkLen: window.Len})
	}
	sink := program.Sink{To: program.ToDense}
	switch c.Function.Out {
	case program.Int64:
		sink.To, p.Output.Keys, slice.ValueCap = program.ToSparse, 1, uint64(rows)
	case program.Float64:
		step.Ops, p.Output.Dense = []program.Op{convert.Op{To: program.Float32}}, 1
	default:
		p.Output.Dense = 1
	}
	p.Graphs = []program.Graph{{Steps: []program.Step{step},
		Sinks: []program.GraphSink{{Value: uint32(len(p.Columns)), Sink: sink}}}}
	out := make([]byte, p.Output.Size(rows, slice.ValueCap))
	slice.Layout, _ = p.Output.LayoutIn(rows, uint64(len(out)))
	return ProgramVector(name, p, slice, input, out), slice.Layout
}
