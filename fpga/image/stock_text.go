package image

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/millrace/millrace/fpga/program"
)

// textVector is a known answer for hash_bytes: Parquet pages of two strings, one for each hash function. The ids are
// those that the functions' authors and users publish: xxHash, Spark, and BigQuery and Guava.
func textVector() Vector {
	const rows = 2
	xxh3 := []uint64{0x2d06800538d394c2, 0x78af5f94892f3950}
	answers := []struct {
		function program.HashFunction
		strings  [rows]string
		ids      [rows]int64
	}{
		{program.HashXXH3, [rows]string{"", "abc"}, [rows]int64{int64(xxh3[0]), int64(xxh3[1])}},
		{program.HashMurmur3, [rows]string{"hello", "Spark"}, [rows]int64{-1008564952, 228093765}},
		{program.HashFarmHash, [rows]string{"1footrue", "test"}, [rows]int64{-1541654101129638711, 8581389452482819506}},
	}
	p := &program.Program{
		Source: program.Parquet,
		Output: program.Output{Keys: uint32(len(answers)), IDs: program.IDs64, Fixed: true},
	}
	place := p.Output.Layout(rows)
	le := binary.LittleEndian
	var input []byte
	out := make([]byte, place.Values)
	slice := &program.Slice{Rows: rows, Layout: place, ValueCap: uint64(len(answers)) * rows}
	for i, a := range answers {
		p.Columns = append(p.Columns, program.Column{Name: a.function.String(), Kind: program.Bytes,
			Sinks: []program.Sink{{To: program.ToSparse, Index: uint32(i),
				Ops: []program.Op{program.HashBytes{Function: a.function}}}}})
		var values []byte
		for row, s := range a.strings {
			values = append(le.AppendUint32(values, uint32(len(s))), s...)
			out = le.AppendUint64(out, uint64(a.ids[row]))
		}
		page := dataPage(values, rows)
		window := program.Span{Off: uint64(len(input)), Len: uint64(len(page))}
		input = append(input, page...)
		slice.Tasks = append(slice.Tasks, program.Task{Column: uint32(i), Count: rows,
			Chunk: program.ChunkType{Physical: 6, Values: rows}, Window: window, ChunkLen: window.Len})
	}
	body := p.Marshal()
	slice.Digest, slice.Program = sha256.Sum256(body), uint64(len(body))
	return Vector{
		Name: "categories", Units: unitsOf(p), Program: body, Input: input, Args: slice.Marshal(), Scratch: 4096,
		Dict: 4096, State: uint64(program.Done), Output: out,
	}
}
