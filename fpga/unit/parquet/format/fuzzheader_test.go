package format_test

import (
	"bytes"
	"errors"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/parquettest"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/thrift"
)

// FuzzPageHeader reads any bytes as a page header. A header that is read must be the same after it is written and
// read again.
func FuzzPageHeader(f *testing.F) {
	r := rand.New(rand.NewSource(1))
	for _, c := range parquettest.Samples()[:20] {
		for _, p := range c.Pages(r) {
			f.Add(parquettest.MarshalHeader(&p.Header))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, n, err := format.ParsePageHeader(b)
		if err != nil {
			if !errors.Is(err, format.ErrMoreInput) {
				parquettest.RequireTyped(t, err, "page header")
			}
			return
		}
		require.LessOrEqual(t, n, len(b))
		for k := range n {
			_, _, err := format.ParsePageHeader(b[:k])
			require.ErrorIs(t, err, format.ErrMoreInput)
		}
		if h.Type == format.IndexPage || h.Type > format.DataPageV2 || h.Encoding == unknownByte ||
			h.DefEncoding == unknownByte || h.RepEncoding == unknownByte {
			return
		}
		again, _, err := format.ParsePageHeader(parquettest.MarshalHeader(&h))
		require.NoError(t, err)
		require.Equal(t, h, again)
	})
}

// FuzzOffsetIndex parses any bytes as an offset index.
func FuzzOffsetIndex(f *testing.F) {
	var w thrift.Writer
	w.Begin()
	w.List(1, thrift.TypeStruct, 2)
	for i := range int64(2) {
		w.Begin()
		w.Int64(1, 4+100*i)
		w.Int32(2, 100)
		w.Int64(3, 10*i)
		w.End()
	}
	w.End()
	f.Add(w.Bytes)
	f.Fuzz(func(t *testing.T, b []byte) {
		ch := format.Chunk{Offset: 4, Compressed: 1000, OffsetIndexLength: int32(len(b))}
		file := &format.File{Size: int64(len(b)), Leaves: []format.Leaf{{}},
			RowGroups: []format.RowGroup{{Rows: 100, Columns: []format.Chunk{ch}}}}
		locations, err := format.ReadOffsetIndex(bytes.NewReader(b), file, 0, 0)
		if err != nil {
			parquettest.RequireTyped(t, err, "offset index")
			return
		}
		row := int64(0)
		for _, p := range locations {
			require.GreaterOrEqual(t, p.Offset, int64(4))
			require.LessOrEqual(t, p.Offset+int64(p.Size), int64(1004))
			require.GreaterOrEqual(t, p.FirstRow, row)
			row = p.FirstRow
		}
	})
}

// unknownByte is what an enumeration's value that no byte can hold is read as.
const unknownByte = 255
