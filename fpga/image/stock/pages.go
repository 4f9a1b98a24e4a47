package stock

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/program"
)

// pageColumn is a column of a known answer: the values of its only page, and the sink that they feed.
type pageColumn struct {
	name   string
	kind   program.Kind
	chunk  program.ChunkType // its number of values is that of the rows if it is 0
	values []byte
	sink   program.Sink
}

// pagesVector is a known answer for Parquet columns of one page each. dense has the expected floats row by row, and ids
// the expected values of one key after the other, one a row. table is a lookup table of the keys 3 to 9, of which three
// have an index, or nil.
func pagesVector(name string, rows int, columns []pageColumn, dense []float32, ids []int64,
	table []byte) image.Vector {
	p := &program.Program{
		Source: program.Parquet,
		Output: program.Output{Dense: uint32(len(dense) / rows), Keys: uint32(len(ids) / rows), IDs: program.IDs64,
			Fixed: true},
	}
	var tables []byte
	if len(table) > 0 {
		p.LookupTables = []program.LookupTable{{Digest: sha256.Sum256(table), Entries: 7, Keys: 3, Least: 3}}
		tables = append(slices.Clone(table), make([]byte, program.Align-len(table))...)
	}
	place := p.Output.Layout(uint32(rows))
	slice := &program.Slice{Rows: uint32(rows), Layout: place, ValueCap: uint64(len(ids))}
	var input []byte
	for i, c := range columns {
		p.Columns = append(p.Columns, program.Column{Name: c.name, Kind: c.kind, List: c.chunk.MaxRep > 0,
			Sinks: []program.Sink{c.sink}})
		if c.chunk.Values == 0 {
			c.chunk.Values = uint64(rows)
		}
		page := image.DataPage(c.values, int(c.chunk.Values))
		window := program.Span{Off: uint64(len(input)), Len: uint64(len(page))}
		input = append(input, page...)
		slice.Tasks = append(slice.Tasks, program.Task{Column: uint32(i), Count: uint32(rows), Chunk: c.chunk,
			Window: window, ChunkLen: window.Len})
	}
	le := binary.LittleEndian
	out := make([]byte, place.Values)
	for i, x := range dense {
		le.PutUint32(out[place.Dense+uint64(i)*4:], math.Float32bits(x))
	}
	for _, id := range ids {
		out = le.AppendUint64(out, uint64(id))
	}
	v := image.ProgramVector(name, p, slice, input, out)
	v.Tables = tables
	return v
}
