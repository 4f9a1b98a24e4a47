package stock

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/operator/vocabulary"
	"github.com/millrace/millrace/fpga/program"
)

// ln10 is ln(1 + 9), rounded to the nearest float32.
const ln10 = 0x40135d8e

// operatorsVector is a known answer for columns of Parquet pages of two rows: fill_null, convert, and the named units.
// Every expected value is written down.
func operatorsVector(units ...program.Unit) image.Vector {
	const rows = 2
	le := binary.LittleEndian
	integers := func(values ...int64) (b []byte) {
		for _, x := range values {
			b = le.AppendUint64(b, uint64(x))
		}
		return b
	}
	var columns []pageColumn
	var ids []int64
	sparse := func(name string, kind program.Kind, chunk program.ChunkType, values []byte, out [rows]int64,
		ops ...program.Op) {
		columns = append(columns, pageColumn{name, kind, chunk, values,
			program.Sink{To: program.ToSparse, Index: uint32(len(columns)), Ops: ops}})
		ids = append(ids, out[:]...)
	}
	plain := program.ChunkType{Physical: 2}
	// The second row is null: a section of definition levels, bit-packed, and one value.
	sparse("nulls", program.Int64, program.ChunkType{Physical: 2, MaxDef: 1},
		append([]byte{2, 0, 0, 0, 0x03, 0b01}, integers(5)...), [rows]int64{5, 6}, fillnull.Op{Int: 6})
	if slices.Contains(units, sigridhash.Unit) { // TorchArrow's own test
		sparse("hash", program.Int64, plain, integers(1, 6), [rows]int64{60, 91}, sigridhash.Op{Salt: 0, Max: 100})
	}
	if slices.Contains(units, bucketize.Unit) { // 10 lies on a border and falls to its left
		sparse("bucket", program.Int64, plain, integers(10, -3), [rows]int64{1, 0},
			convert.Op{To: program.Float32}, &bucketize.Op{Borders32: []float32{0, 10, 20}})
	}
	if slices.Contains(units, positivemodulus.Unit) {
		sparse("modulus", program.Int64, plain, integers(12, -7), [rows]int64{2, 3}, positivemodulus.Op{M: 5})
	}
	if slices.Contains(units, hextoint.Unit) {
		var text []byte
		for _, s := range []string{"1f", "DEADBEEF"} {
			text = append(le.AppendUint32(text, uint32(len(s))), s...)
		}
		sparse("hex", program.Bytes, program.ChunkType{Physical: 6}, text, [rows]int64{0x1f, 0xdeadbeef},
			hextoint.Op{})
	}
	var table []byte
	if slices.Contains(units, vocabulary.Unit) { // the keys 3, 9 and 4 have the indices 0, 1 and 2
		for _, next := range []uint32{1, 3, 0, 0, 0, 0, 2} {
			table = le.AppendUint32(table, next)
		}
		sparse("vocabulary", program.Int64, plain, integers(4, 5), [rows]int64{102, 1},
			vocabulary.Op{Table: 0, Absent: vocabulary.AbsentRare, Base: 100, Rare: 1})
	}
	toFloat := []program.Op{convert.Op{To: program.Float32}}
	dense := []float32{9, -3}
	if slices.Contains(units, log.Unit) {
		toFloat = []program.Op{clamp.Op{IntLo: 0, IntHi: math.MaxInt64}, convert.Op{To: program.Float32},
			log.Op{Add: 1}}
		dense = []float32{math.Float32frombits(ln10), 0}
	}
	columns = append(columns, pageColumn{"dense", program.Int64, plain, integers(9, -3),
		program.Sink{To: program.ToDense, Ops: toFloat}})
	return pagesVector("operators", rows, columns, dense, ids, table)
}

// criteoVector is a known answer for two rows of Criteo's text, one full of nulls, through Piper's operators without
// the vocabulary.
func criteoVector() image.Vector {
	const rows = 2
	p := &program.Program{
		Source: program.CriteoTSV, Label: true,
		Columns: []program.Column{
			{Name: "cat_0", Field: 14, Kind: program.Int64, Sinks: []program.Sink{{To: program.ToSparse,
				Ops: []program.Op{fillnull.Op{Int: 0}, positivemodulus.Op{M: 5}}}}},
			{Name: "label", Kind: program.Int64, Sinks: []program.Sink{{To: program.ToLabel,
				Ops: []program.Op{convert.Op{To: program.Float32}}}}},
			{Name: "int_0", Field: 1, Kind: program.Int64, Sinks: []program.Sink{{To: program.ToDense,
				Ops: []program.Op{fillnull.Op{Int: -3}, clamp.Op{IntLo: 0, IntHi: math.MaxInt64},
					convert.Op{To: program.Float32}, log.Op{Add: 1}}}}},
		},
		Output: program.Output{Label: true, Dense: 1, Keys: 1, IDs: program.IDs64, Fixed: true},
	}
	input := []byte("1\t9" + strings.Repeat("\t", 12) + "\tc" + strings.Repeat("\t", 25) + "\n" +
		"0" + strings.Repeat("\t", 39) + "\n")
	place := p.Output.Layout(rows)
	le := binary.LittleEndian
	out := make([]byte, place.Values+rows*8)
	le.PutUint32(out[place.Dense:], ln10)
	le.PutUint32(out[place.Label:], math.Float32bits(1))
	le.PutUint64(out[place.Values:], 12%5)
	slice := &program.Slice{
		Rows: rows, Layout: place, ValueCap: rows,
		Tasks: []program.Task{{
			Count: rows, Window: program.Span{Len: uint64(len(input))}, ChunkLen: uint64(len(input)),
			Scratch: program.Span{Len: 4096},
		}},
	}
	v := image.ProgramVector("criteo rows", p, slice, input, out)
	v.Dict = 0 // text has no dictionary
	return v
}
