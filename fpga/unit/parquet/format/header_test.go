package format_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/parquettest"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/thrift"
)

func TestPageHeaderChecks(t *testing.T) {
	v2 := parquettest.HonestHeader()
	_, _, err := format.ParsePageHeader(parquettest.MarshalHeader(&v2))
	require.NoError(t, err)
	for name, lie := range parquettest.HeaderLies() {
		h := v2
		lie(&h)
		_, _, err := format.ParsePageHeader(parquettest.MarshalHeader(&h))
		require.ErrorIs(t, err, format.ErrCorrupt, name)
	}
	// A header without a required field, with the body of another type, or with two bodies.
	h := parquettest.MarshalHeader(&v2)
	require.ErrorIs(t, parseHeader([]byte{0}), format.ErrCorrupt)
	h[1] = 0 // DATA_PAGE
	require.ErrorIs(t, parseHeader(h), format.ErrCorrupt)
	var w thrift.Writer
	w.Begin()
	for id := int32(1); id <= 3; id++ {
		w.Int32(id, 0)
	}
	for _, id := range []int32{5, 7} {
		w.Field(id, thrift.TypeStruct)
		w.Bytes = append(w.Bytes, 0)
	}
	w.End()
	require.ErrorIs(t, parseHeader(w.Bytes), format.ErrCorrupt)
	// Endless statistics are cut off.
	long := append([]byte{0x15, 0}, 0x88, 0xff, 0xff, 0xff, 0xff, 0x0f)
	require.ErrorIs(t, parseHeader(long), format.ErrMoreInput)
	require.ErrorIs(t, parseHeader(append(long, make([]byte, format.MaxPageHeader)...)), format.ErrCorrupt)
}

func parseHeader(b []byte) error {
	_, _, err := format.ParsePageHeader(b)
	return err
}
