package format

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/internal/thrift"
)

func TestThriftBounds(t *testing.T) {
	cases := map[string]struct {
		b    []byte
		read func(r *compactReader)
		want error
	}{
		"list longer than its bytes": {[]byte{0xfc, 0xff, 0xff, 0xff, 0x0f},
			func(r *compactReader) { r.listField(thriftList, thriftStruct) }, ErrMoreInput},
		"list of another type": {[]byte{0x15, 0},
			func(r *compactReader) { r.listField(thriftList, thriftStruct) }, ErrCorrupt},
		"string longer than its bytes": {[]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 'a'},
			func(r *compactReader) { r.readBytes() }, ErrMoreInput},
		"number of 11 bytes": {bytes.Repeat([]byte{0xff}, 11), func(r *compactReader) { r.readUvarint() },
			ErrCorrupt},
		"number beyond 32 bits": {[]byte{0x80, 0x80, 0x80, 0x80, 0x20}, func(r *compactReader) { r.readInt32() },
			ErrCorrupt},
		"map longer than its bytes": {[]byte{0xff, 0xff, 0x03, 0x88, 1},
			func(r *compactReader) { r.skipField(thriftMap) }, ErrMoreInput},
		"structures without end": {bytes.Repeat([]byte{0x1c}, 1000),
			func(r *compactReader) { r.skipField(thriftStruct) }, ErrCorrupt},
		"lists without end": {bytes.Repeat([]byte{0x19}, 1000),
			func(r *compactReader) { r.skipField(thriftList) }, ErrCorrupt},
		"unknown field type": {[]byte{0x1e}, func(r *compactReader) { r.skipField(thriftStruct) },
			ErrCorrupt},
		"unknown element type": {[]byte{0x1f, 0}, func(r *compactReader) { r.skipField(thriftList) },
			ErrCorrupt},
		"field beyond 16 bits": {[]byte{0x08, 0x80, 0x80, 0x04, 1, 0},
			func(r *compactReader) { r.skipField(thriftStruct) }, ErrCorrupt},
		"double cut short": {[]byte{1, 2, 3}, func(r *compactReader) { r.skipField(thriftDouble) },
			ErrMoreInput},
		"every type": {everyThriftType(), func(r *compactReader) { r.skipField(thriftStruct) }, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := compactReader{src: c.b}
			c.read(&r)
			require.ErrorIs(t, r.err, c.want)
			if c.want == nil {
				require.Zero(t, r.bytesLeft())
			}
		})
	}
}

// everyThriftType is a structure with a field of every type.
func everyThriftType() []byte {
	var w thrift.Writer
	w.Begin()
	w.Bool(1, true)
	w.Bool(2, false)
	w.Field(3, thriftByte)
	w.Bytes = append(w.Bytes, 7)
	w.Int32(40, -5)
	w.Int64(41, -1<<63)
	w.Field(42, thriftDouble)
	w.Bytes = append(w.Bytes, make([]byte, 8)...)
	w.String(43, "words")
	w.List(44, thriftTrue, 3)
	w.Bytes = append(w.Bytes, 1, 2, 1)
	w.List(45, thriftInt32, 20)
	w.Bytes = append(w.Bytes, make([]byte, 20)...)
	w.Field(46, thriftMap)
	w.Bytes = append(w.Bytes, 1, thriftBinary<<4|thriftFalse, 1, 'k', 2)
	w.Field(47, thriftMap)
	w.Bytes = append(w.Bytes, 0)
	w.Field(48, thriftUUID)
	w.Bytes = append(w.Bytes, make([]byte, 16)...)
	w.Field(49, thriftStruct)
	w.Begin()
	w.Int32(1, 1)
	w.End()
	w.End()
	return w.Bytes
}
