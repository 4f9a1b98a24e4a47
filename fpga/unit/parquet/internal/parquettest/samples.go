package parquettest

import (
	"errors"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// SmallColumn is an optional column of 30 integers in pages of 10 rows.
func SmallColumn() *Column {
	c := &Column{Shape: ShapeOptional, Physical: format.Int64, PageRows: 10}
	c.FillRandom(rand.New(rand.NewSource(1)), 30, 0.2, false)
	return c
}

// Samples are small columns of every kind, for tests that damage them.
func Samples() []*Column {
	r := rand.New(rand.NewSource(7))
	var all []*Column
	for s := Shape(0); s < Shapes; s++ {
		for i, physical := range []format.Type{format.Boolean, format.Int32, format.Int64, format.Float, format.Double,
			format.ByteArray, format.FixedLenByteArray} {
			for _, e := range append((&Column{Physical: physical}).DeltaEncodings(), format.Plain, format.RLEDictionary,
				format.RLE) {
				if e == format.RLE && physical != format.Boolean {
					continue
				}
				c := &Column{Shape: s, Physical: physical, Encoding: e, PageRows: 40, V2: (int(s)+i)%2 == 0,
					Codec: []format.Codec{format.Uncompressed, format.Snappy, format.Gzip, format.Zstd, format.LZ4Raw,
						format.Brotli, format.LZ4}[(int(s)*3+i)%7]}
				if physical == format.FixedLenByteArray {
					c.Length = 5
				}
				c.SplitRows = !c.V2 && i%3 == 0
				c.FillRandom(r, 100, 0.2, i%2 == 0)
				all = append(all, c)
			}
		}
	}
	return all
}

// ColumnType returns the type of the column's leaf.
func (c *Column) ColumnType() format.ColumnType {
	ct := c.Shape.ColumnType()
	ct.Physical, ct.TypeLength, ct.Unsigned, ct.Codec = c.Physical, c.Length, c.Unsigned, c.Codec
	return ct
}

// RequireTyped fails the test unless err matches one of the errors of package format.
func RequireTyped(t testing.TB, err error, what string) {
	for _, target := range []error{format.ErrCorrupt, format.ErrCRC, format.ErrUnsupported, format.ErrTooSmall,
		format.ErrLimit} {
		if errors.Is(err, target) {
			return
		}
	}
	require.Failf(t, "an untyped error", "%s: %v", what, err)
}

// NestedSamples are small leaves of maps to lists and of lists in lists, for tests that damage them.
func NestedSamples() []*Column {
	r := rand.New(rand.NewSource(8))
	var all []*Column
	for _, s := range []Shape{ShapeInMap, ShapeInMapRequired, ShapeLists, ShapeListsDeep} {
		for i, physical := range []format.Type{format.Int64, format.Float, format.Boolean, format.ByteArray} {
			for _, e := range []format.Encoding{format.Plain, format.RLEDictionary} {
				c := &Column{Shape: s, Physical: physical, Encoding: e, PageRows: 30, V2: i%2 == 0}
				c.FillRandom(r, 80, 0.2, i%2 == 1)
				all = append(all, c)
			}
		}
	}
	return all
}

// Chunk writes a column's pages one behind the other.
func (c *Column) Chunk(r *rand.Rand) []byte {
	var b []byte
	for _, p := range c.Pages(r) {
		b = append(append(b, MarshalHeader(&p.Header)...), p.Payload...)
	}
	return b
}

// HonestHeader is the header of a v2 data page that does not contradict itself.
func HonestHeader() format.PageHeader {
	return format.PageHeader{Type: format.DataPageV2, Uncompressed: 100, Compressed: 50, NumValues: 10, NumRows: 10,
		NumNulls: 2, DefBytes: 20, RepBytes: 30}
}

// HeaderLies are changes of HonestHeader that make it contradict itself, by what is wrong then.
func HeaderLies() map[string]func(h *format.PageHeader) {
	return map[string]func(h *format.PageHeader){
		"levels longer than the page":      func(h *format.PageHeader) { h.DefBytes++ },
		"levels longer than unpacked":      func(h *format.PageHeader) { h.Uncompressed = 49 },
		"levels whose sum passes 31 bits":  func(h *format.PageHeader) { h.DefBytes, h.RepBytes = 1<<31-1, 1<<31-1 },
		"negative levels":                  func(h *format.PageHeader) { h.RepBytes = -1 },
		"more nulls than values":           func(h *format.PageHeader) { h.NumNulls = 11 },
		"more rows than values":            func(h *format.PageHeader) { h.NumRows = 11 },
		"negative values":                  func(h *format.PageHeader) { h.NumValues = -1 },
		"negative size":                    func(h *format.PageHeader) { h.Compressed = -1 },
		"negative unpacked size":           func(h *format.PageHeader) { h.Uncompressed = -1 },
		"negative rows":                    func(h *format.PageHeader) { h.NumRows = -1 },
		"negative nulls":                   func(h *format.PageHeader) { h.NumNulls = -1 },
		"negative lengths that sum to one": func(h *format.PageHeader) { h.DefBytes, h.RepBytes = -29, 30 },
	}
}
