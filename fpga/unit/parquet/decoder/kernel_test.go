package decoder

import (
	"bytes"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/parquettest"
	"github.com/millrace/millrace/fpga/unit/parquet/reference"
)

// drawColumn draws a column of any kind that the decoder reads.
func drawColumn(t *rapid.T, maxRows int) *parquettest.Column {
	c := &parquettest.Column{
		Shape: parquettest.Shape(rapid.IntRange(0, parquettest.Shapes-1).Draw(t, "shape")),
		Physical: rapid.SampledFrom([]format.Type{format.Boolean, format.Int32, format.Int64, format.Float,
			format.Double, format.ByteArray, format.FixedLenByteArray, format.Int96}).Draw(t, "type"),
		Codec: rapid.SampledFrom([]format.Codec{format.Uncompressed, format.Snappy, format.Gzip, format.Brotli,
			format.LZ4, format.Zstd, format.LZ4Raw}).Draw(t, "codec"),
		V2:       rapid.Bool().Draw(t, "v2"),
		CRC:      rapid.Bool().Draw(t, "crc"),
		PageRows: rapid.IntRange(1, 700).Draw(t, "page rows"),
	}
	encodings := []format.Encoding{format.Plain, format.RLEDictionary, format.PlainDictionary}
	if c.Physical == format.Boolean {
		encodings = append(encodings, format.RLE)
	}
	encodings = append(encodings, c.DeltaEncodings()...)
	c.Encoding = rapid.SampledFrom(encodings).Draw(t, "encoding")
	if c.Physical == format.Int32 {
		c.Unsigned = rapid.Bool().Draw(t, "unsigned")
	}
	if c.Physical == format.FixedLenByteArray {
		c.Length = int32(rapid.IntRange(1, 20).Draw(t, "length"))
	}
	if c.Physical == format.Int96 {
		c.Length = 12
	}
	c.OmitEmptyDeltas = rapid.Bool().Draw(t, "bare pages of nulls")
	if !c.V2 {
		c.MSBLevels = rapid.Bool().Draw(t, "bit-packed levels")
		c.SplitRows = rapid.Bool().Draw(t, "rows over pages")
	}
	r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
	nulls := rapid.SampledFrom([]float64{0, 0.03, 0.5, 1}).Draw(t, "nulls")
	c.FillRandom(r, rapid.IntRange(0, maxRows).Draw(t, "rows"), nulls, rapid.Bool().Draw(t, "few values"))
	return c
}

// TestKernelEqualsReference writes random columns and reads them with kernel and reference, the kernel in random steps
// with skips between them: all must give the rows that were written.
func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawColumn(t, 1500)
		b := c.File(rand.New(rand.NewSource(rapid.Int64().Draw(t, "layout"))))
		r := bytes.NewReader(b)
		f, err := format.ReadFooter(r, int64(len(b)))
		require.NoError(t, err)
		require.NoError(t, f.Leaves[0].Unsupported)
		if c.Shape != parquettest.ShapeInGroup && c.Shape != parquettest.ShapeListInGroup {
			require.Equal(t, "c", f.Leaves[0].Name)
		}
		ref, err := reference.ReadColumn(r, f, 0, 0)
		require.NoError(t, err, c)
		requireSameRows(t, c.Rows, ref.Rows, "reference of "+c.String())
		got, _, err := readKernel(t, r, f, 0, 0)
		require.NoError(t, err, c)
		requireSameRows(t, c.Rows, got, "kernel of "+c.String())
		steps := rapid.SliceOfN(rapid.IntRange(-200, 300).Filter(func(n int) bool { return n != 0 }), 1, 6).Draw(t,
			"steps")
		got, places, err := readKernel(t, r, f, 0, 0, steps...)
		require.NoError(t, err, c)
		for i, p := range places {
			if !same(c.Rows[p], got[i]) {
				t.Fatalf("%v: steps %v: row %d: want %v, got %v", c, steps, p, c.Rows[p], got[i])
			}
		}
	})
}

// TestOraclesReadOurFiles keeps the test writer honest: another library reads the same values from its files.
func TestOraclesReadOurFiles(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawColumn(t, 300)
		// BIT_PACKED levels, cut rows, pages without a header of deltas, gzip of two members, and brotli of no bytes
		// are read by neither of the others or by one.
		c.MSBLevels, c.SplitRows, c.OmitEmptyDeltas = false, false, false
		if c.Codec == format.Gzip || c.Codec == format.Brotli && c.V2 {
			c.Codec = format.Zstd
		}
		b := c.File(rand.New(rand.NewSource(rapid.Int64().Draw(t, "layout"))))
		f, err := format.ReadFooter(bytes.NewReader(b), int64(len(b)))
		require.NoError(t, err)
		if rows, err := arrowGoRows(bytes.NewReader(b), int64(len(b)), &f.Leaves[0]); err == nil && len(c.Rows) > 0 {
			requireSameRows(t, c.Rows, rows, "arrow-go of "+c.String())
			compared++
		}
	})
	if !testing.Short() { // which draws too few files to count on
		require.Greater(t, compared, 10, "of the 100 files hardly any was read by another library")
	}
}
