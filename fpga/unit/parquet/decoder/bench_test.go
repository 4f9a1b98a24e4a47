package decoder

import (
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/parquettest"
)

// BenchmarkDecode decodes one page of 65,536 rows over and over, 4,096 rows a call, into the same block, and reports
// nanoseconds an element.
func BenchmarkDecode(b *testing.B) {
	const rows = 1 << 16
	cases := []struct {
		name  string
		c     parquettest.Column
		nulls float64
		few   int
	}{
		{name: "plain/int32", c: parquettest.Column{Physical: format.Int32}},
		{name: "plain/uint32", c: parquettest.Column{Physical: format.Int32, Unsigned: true}},
		{name: "plain/int64", c: parquettest.Column{Physical: format.Int64}},
		{name: "plain/float", c: parquettest.Column{Physical: format.Float}},
		{name: "plain/bytes", c: parquettest.Column{Physical: format.ByteArray}},
		{name: "plain/boolean", c: parquettest.Column{Physical: format.Boolean}},
		{name: "plain/int32/optional/none_null", c: parquettest.Column{Physical: format.Int32,
			Shape: parquettest.ShapeOptional}},
		{name: "plain/int32/optional/third_null", c: parquettest.Column{Physical: format.Int32,
			Shape: parquettest.ShapeOptional}, nulls: 1. / 3},
		{name: "plain/float/optional/third_null", c: parquettest.Column{Physical: format.Float,
			Shape: parquettest.ShapeOptional}, nulls: 1. / 3},
		{name: "dictionary/int64/200", c: parquettest.Column{Physical: format.Int64, Encoding: format.RLEDictionary},
			few: 200},
		{name: "dictionary/int64/10000", c: parquettest.Column{Physical: format.Int64, Encoding: format.RLEDictionary},
			few: 10000},
		{name: "dictionary/int64/60000", c: parquettest.Column{Physical: format.Int64, Encoding: format.RLEDictionary},
			few: 60000},
		{name: "dictionary/int64/200/third_null", c: parquettest.Column{Physical: format.Int64,
			Encoding: format.RLEDictionary, Shape: parquettest.ShapeOptional}, few: 200, nulls: 1. / 3},
		{name: "dictionary/float/all different", c: parquettest.Column{Physical: format.Float,
			Encoding: format.RLEDictionary}},
		{name: "delta/int64", c: parquettest.Column{Physical: format.Int64, Encoding: format.DeltaBinaryPacked}},
		{name: "delta/int32", c: parquettest.Column{Physical: format.Int32, Encoding: format.DeltaBinaryPacked}},
		{name: "split/float", c: parquettest.Column{Physical: format.Float, Encoding: format.ByteStreamSplit}},
		{name: "split/int32", c: parquettest.Column{Physical: format.Int32, Encoding: format.ByteStreamSplit}},
		{name: "split/double", c: parquettest.Column{Physical: format.Double, Encoding: format.ByteStreamSplit}},
		{name: "list/plain/int64", c: parquettest.Column{Physical: format.Int64, Shape: parquettest.ShapeList}},
		{name: "list/dictionary/int64/10000", c: parquettest.Column{Physical: format.Int64,
			Shape: parquettest.ShapeList, Encoding: format.RLEDictionary}, few: 10000},
		{name: "list/plain/int64/tenth_null", c: parquettest.Column{Physical: format.Int64,
			Shape: parquettest.ShapeList}, nulls: .1},
	}
	for _, bc := range cases {
		b.Run(bc.name, func(b *testing.B) {
			c := bc.c
			r := rand.New(rand.NewSource(1))
			benchRows(&c, r, rows, bc.nulls, bc.few)
			ct, h, page, dict := benchPage(b, &c, r)
			var d Decoder
			var block Block
			elements := 0
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				require.NoError(b, d.Reset(&ct, &h, page, dict))
				elements = 0
				for d.Rows() > 0 {
					block.Reset(ct.Kind())
					if _, err := d.Next(&block, 4096); err != nil {
						b.Fatal(err)
					}
					elements += block.Values()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(elements), "ns/value")
		})
	}
}

// benchRows fills a column with rows of few different values, or of all different ones if few is 0; lists have 20
// elements on average.
func benchRows(c *parquettest.Column, r *rand.Rand, n int, nulls float64, few int) {
	var pool []any
	for range few {
		pool = append(pool, c.RandomValue(r, false))
	}
	_, repDef := c.Shape.LevelBounds()
	value := func() any {
		switch {
		case r.Float64() < nulls:
			return nil
		case few > 0:
			return pool[r.Intn(few)]
		}
		return c.RandomValue(r, false)
	}
	for range n {
		if repDef == 0 {
			c.Rows = append(c.Rows, value())
			continue
		}
		list := []any{}
		for range r.Intn(41) {
			list = append(list, value())
		}
		c.Rows = append(c.Rows, list)
	}
}

// benchPage writes the column as one page with levels and indices as common writers leave them: long runs.
func benchPage(b *testing.B, c *parquettest.Column, r *rand.Rand) (format.ColumnType, format.PageHeader, []byte,
	*Dictionary) {
	c.PageRows, c.PlainRuns = len(c.Rows), true
	pages := c.Pages(r)
	maxDef, repDef := c.Shape.LevelBounds()
	ct := format.ColumnType{Physical: c.Physical, Unsigned: c.Unsigned, MaxDef: maxDef, RepDef: repDef,
		List: repDef > 0, MaxRep: min(repDef, 1)}
	data := pages[len(pages)-1]
	if len(pages) == 1 {
		return ct, data.Header, data.Payload, nil
	}
	mem := alignedBytes(int(DictionarySize(&pages[0].Header, &ct)))
	n, err := DecodeDictionary(mem, &pages[0].Header, pages[0].Payload, &ct)
	require.NoError(b, err)
	dict, err := OpenDictionary(mem[:n], &ct)
	require.NoError(b, err)
	return ct, data.Header, data.Payload, &dict
}

// alignedBytes makes memory that a dictionary can lie in.
func alignedBytes(n int) []byte {
	return bytesOf(make([]uint64, (n+7)/8))
}
