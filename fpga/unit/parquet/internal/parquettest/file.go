package parquettest

import (
	"encoding/binary"
	"math/rand"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/thrift"
)

// File writes a file of one row group and one column.
func (c *Column) File(r *rand.Rand) []byte {
	return c.FileOf(c.Pages(r), int64(len(c.Levels(r))), int64(len(c.Rows)))
}

// FileOf writes a file around pages, whose footer says values and rows.
func (c *Column) FileOf(pages []Page, values, rows int64) []byte {
	b := []byte(FileMagic)
	var dictAt, dataAt, uncompressed int64
	for _, p := range pages {
		if p.Header.Type == format.DictionaryPage {
			dictAt = int64(len(b))
		} else if dataAt == 0 {
			dataAt = int64(len(b))
		}
		h := MarshalHeader(&p.Header)
		b = append(append(b, h...), p.Payload...)
		uncompressed += int64(len(h)) + int64(p.Header.Uncompressed)
	}
	return c.Footer(b, dictAt, dataAt, uncompressed, values, rows)
}

// Footer writes a footer behind b. Its numbers need not be true.
func (c *Column) Footer(b []byte, dictAt, dataAt, uncompressed, values, rows int64) []byte {
	var w thrift.Writer
	w.Begin()
	w.Int32(1, 1)
	var schema thrift.Writer
	n := c.Shape.schema(&schema, "c", func(name string, repetition int32) {
		schema.Begin()
		schema.Int32(1, int32(c.Physical))
		if c.Length > 0 {
			schema.Int32(2, c.Length)
		}
		schema.Int32(3, repetition)
		schema.String(4, name)
		if c.Unsigned {
			schema.Int32(6, 13) // UINT_32
		}
		schema.End()
	})
	w.List(2, thrift.TypeStruct, n+1)
	w.Begin()
	w.String(4, "root")
	w.Int32(5, 1)
	w.End()
	w.Bytes = append(w.Bytes, schema.Bytes...)
	w.Int64(3, rows)
	w.List(4, thrift.TypeStruct, 1)
	w.Begin()
	w.List(1, thrift.TypeStruct, 1)
	w.Begin()
	w.Int64(2, 0)
	w.Field(3, thrift.TypeStruct)
	w.Begin()
	w.Int32(1, int32(c.Physical))
	w.List(2, thrift.TypeI32, 2)
	w.Zigzag(int64(c.Encoding))
	w.Zigzag(int64(format.RLE))
	w.List(3, thrift.TypeBinary, 1)
	w.AppendString("c")
	w.Int32(4, int32(c.Codec))
	w.Int64(5, values)
	w.Int64(6, uncompressed)
	w.Int64(7, int64(len(b)-len(FileMagic)))
	w.Int64(9, dataAt)
	if dictAt > 0 {
		w.Int64(11, dictAt)
	}
	w.End()
	w.End()
	w.Int64(2, uncompressed)
	w.Int64(3, rows)
	w.End()
	w.String(6, "millrace test")
	w.End()
	b = append(b, w.Bytes...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(w.Bytes)))
	return append(b, FileMagic...)
}

// FileMagic stands at both ends of a file.
const FileMagic = "PAR1"
