package image

import (
	"encoding/binary"
	"math"

	"github.com/millrace/millrace/fpga/operator/decimal"
	"github.com/millrace/millrace/fpga/operator/fixedlength"
	"github.com/millrace/millrace/fpga/operator/float16"
	"github.com/millrace/millrace/fpga/operator/int96time"
	"github.com/millrace/millrace/fpga/operator/rescale"
	"github.com/millrace/millrace/fpga/program"
)

// annotatedVector is a known answer for the operators that read times, decimals and FLOAT16, and for lists of a
// fixed length: Parquet pages of two rows each. Every expected value is written down, none computed.
func annotatedVector() Vector {
	le := binary.LittleEndian
	var times, stamps []byte
	for _, x := range []int64{1_999, -1} { // milliseconds
		times = le.AppendUint64(times, uint64(x))
	}
	for _, day := range []uint32{2440589, 2440587} { // the days beside 1970-01-01, at noon
		stamps = le.AppendUint32(le.AppendUint64(stamps, 43_200_000_000_000), day)
	}
	// 12.34 and -0.01, with the scale 2, and binary16: 1.5 and the least number, with its sign.
	decimals, halves := []byte{2, 0, 0, 0, 0x04, 0xd2, 1, 0, 0, 0, 0xff}, []byte{0x00, 0x3e, 0x01, 0x80}

	// Lists of float32, {0.5, 2} and {3}: repetition levels 0 1 0 bit-packed, definition levels 1 1 1 as a run.
	lists := []byte{2, 0, 0, 0, 0x03, 0b010, 2, 0, 0, 0, 3 << 1, 1}
	for _, x := range []float32{0.5, 2, 3} {
		lists = le.AppendUint32(lists, math.Float32bits(x))
	}

	columns := []pageColumn{
		{"time", program.Int64, program.ChunkType{Physical: 2}, times,
			program.Sink{To: program.ToSparse, Ops: []program.Op{rescale.Op{Multiplier: 1, Divisor: 1000}}}},
		{"stamp", program.Bytes, program.ChunkType{Physical: 3, TypeLength: 12}, stamps,
			program.Sink{To: program.ToSparse, Index: 1, Ops: []program.Op{int96time.Op{To: int96time.Seconds}}}},
		{"decimal", program.Bytes, program.ChunkType{Physical: 6}, decimals,
			program.Sink{To: program.ToDense, Ops: []program.Op{decimal.Op{Scale: 2, To: program.Float32}}}},
		{"half", program.Bytes, program.ChunkType{Physical: 7, TypeLength: 2}, halves,
			program.Sink{To: program.ToDense, Index: 1, Ops: []program.Op{float16.Op{}}}},
		{"list", program.Float32, program.ChunkType{Physical: 4, MaxDef: 1, MaxRep: 1, ElementDef: 1, Values: 3}, lists,
			program.Sink{To: program.ToDense, Index: 2,
				Ops: []program.Op{fixedlength.Op{Length: 2, Pads: true, Pad: -1}}}},
	}
	dense := []float32{12.34, 1.5, 0.5, 2, -0.01, -0x1p-24, 3, -1} // row by row
	return pagesVector("times and decimals", 2, columns, dense, []int64{1, -1, 86400 + 43200, -43200})
}
