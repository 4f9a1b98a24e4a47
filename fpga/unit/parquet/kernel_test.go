package parquet

import (
	"bytes"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawColumn draws a column of any kind that we read.
func drawColumn(t *rapid.T, maxRows int) *built {
	c := &built{
		shape:    shape(rapid.IntRange(0, shapes-1).Draw(t, "shape")),
		physical: rapid.SampledFrom([]Type{Boolean, Int32, Int64, Float, Double, ByteArray, FixedLenByteArray}).Draw(t, "type"),
		codec:    rapid.SampledFrom([]Codec{Uncompressed, Snappy, Gzip, Brotli, LZ4, Zstd, LZ4Raw}).Draw(t, "codec"),
		v2:       rapid.Bool().Draw(t, "v2"),
		crc:      rapid.Bool().Draw(t, "crc"),
		pageRows: rapid.IntRange(1, 700).Draw(t, "page rows"),
	}
	encodings := []Encoding{Plain, RLEDictionary, PlainDictionary}
	if c.physical == Boolean {
		encodings = append(encodings, RLE)
	}
	encodings = append(encodings, c.deltaEncodings()...)
	c.encoding = rapid.SampledFrom(encodings).Draw(t, "encoding")
	if c.physical == Int32 {
		c.unsigned = rapid.Bool().Draw(t, "unsigned")
	}
	if c.physical == FixedLenByteArray {
		c.length = int32(rapid.IntRange(1, 20).Draw(t, "length"))
	}
	c.bare = rapid.Bool().Draw(t, "bare pages of nulls")
	if !c.v2 {
		c.msb = rapid.Bool().Draw(t, "bit-packed levels")
		c.split = rapid.Bool().Draw(t, "rows over pages")
	}
	r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
	nulls := rapid.SampledFrom([]float64{0, 0.03, 0.5, 1}).Draw(t, "nulls")
	c.randomRows(r, rapid.IntRange(0, maxRows).Draw(t, "rows"), nulls, rapid.Bool().Draw(t, "few values"))
	return c
}

// TestKernelEqualsReference writes random columns and reads them with kernel and reference, the kernel in random steps with
// skips between them: all must give the rows that were written.
func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawColumn(t, 1500)
		b := c.file(rand.New(rand.NewSource(rapid.Int64().Draw(t, "layout"))))
		r := bytes.NewReader(b)
		f, err := ReadFooter(r, int64(len(b)))
		require.NoError(t, err)
		require.NoError(t, f.Leaves[0].Unsupported)
		if c.shape != shapeInGroup && c.shape != shapeListInGroup {
			require.Equal(t, "c", f.Leaves[0].Name)
		}
		ref, err := ReadColumnReference(r, f, 0, 0)
		require.NoError(t, err, c)
		requireSameRows(t, c.rows, ref.Rows, "reference of "+c.String())
		got, _, err := readKernel(t, r, f, 0, 0)
		require.NoError(t, err, c)
		requireSameRows(t, c.rows, got, "kernel of "+c.String())
		steps := rapid.SliceOfN(rapid.IntRange(-200, 300).Filter(func(n int) bool { return n != 0 }), 1, 6).Draw(t, "steps")
		got, places, err := readKernel(t, r, f, 0, 0, steps...)
		require.NoError(t, err, c)
		for i, p := range places {
			if !same(c.rows[p], got[i]) {
				t.Fatalf("%v: steps %v: row %d: want %v, got %v", c, steps, p, c.rows[p], got[i])
			}
		}
	})
}

// TestOraclesReadOurFiles keeps the test writer honest: another library reads the same values from its files.
func TestOraclesReadOurFiles(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawColumn(t, 300)
		// BIT_PACKED levels, cut rows, pages without a header of deltas, gzip of two members, and brotli of no bytes are read by
		// neither of the others or by one.
		c.msb, c.split, c.bare = false, false, false
		if c.codec == Gzip || c.codec == Brotli && c.v2 {
			c.codec = Zstd
		}
		b := c.file(rand.New(rand.NewSource(rapid.Int64().Draw(t, "layout"))))
		f, err := ReadFooter(bytes.NewReader(b), int64(len(b)))
		require.NoError(t, err)
		if rows, err := arrowGoRows(bytes.NewReader(b), int64(len(b)), &f.Leaves[0]); err == nil && len(c.rows) > 0 {
			requireSameRows(t, c.rows, rows, "arrow-go of "+c.String())
			compared++
		}
	})
	require.Greater(t, compared, 10, "of the 100 files hardly any was read by another library")
}
