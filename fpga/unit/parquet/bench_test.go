package parquet

import (
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkDecode decodes one page of 65,536 rows over and over, 4,096 rows a call, into the same block, and reports
// nanoseconds a value slot.
func BenchmarkDecode(b *testing.B) {
	const rows = 1 << 16
	cases := []struct {
		name  string
		c     built
		nulls float64
		few   int
	}{
		{name: "plain/int32", c: built{physical: Int32}},
		{name: "plain/uint32", c: built{physical: Int32, unsigned: true}},
		{name: "plain/int64", c: built{physical: Int64}},
		{name: "plain/float", c: built{physical: Float}},
		{name: "plain/bytes", c: built{physical: ByteArray}},
		{name: "plain/boolean", c: built{physical: Boolean}},
		{name: "plain/int32/optional/none_null", c: built{physical: Int32, shape: shapeOptional}},
		{name: "plain/int32/optional/third_null", c: built{physical: Int32, shape: shapeOptional}, nulls: 1. / 3},
		{name: "plain/float/optional/third_null", c: built{physical: Float, shape: shapeOptional}, nulls: 1. / 3},
		{name: "dictionary/int64/200", c: built{physical: Int64, encoding: RLEDictionary}, few: 200},
		{name: "dictionary/int64/10000", c: built{physical: Int64, encoding: RLEDictionary}, few: 10000},
		{name: "dictionary/int64/60000", c: built{physical: Int64, encoding: RLEDictionary}, few: 60000},
		{name: "dictionary/int64/200/third_null", c: built{physical: Int64, encoding: RLEDictionary, shape: shapeOptional}, few: 200, nulls: 1. / 3},
		{name: "dictionary/float/all different", c: built{physical: Float, encoding: RLEDictionary}},
		{name: "delta/int64", c: built{physical: Int64, encoding: DeltaBinaryPacked}},
		{name: "delta/int32", c: built{physical: Int32, encoding: DeltaBinaryPacked}},
		{name: "split/float", c: built{physical: Float, encoding: ByteStreamSplit}},
		{name: "split/int32", c: built{physical: Int32, encoding: ByteStreamSplit}},
		{name: "split/double", c: built{physical: Double, encoding: ByteStreamSplit}},
		{name: "list/plain/int64", c: built{physical: Int64, shape: shapeList}},
		{name: "list/dictionary/int64/10000", c: built{physical: Int64, shape: shapeList, encoding: RLEDictionary}, few: 10000},
		{name: "list/plain/int64/tenth_null", c: built{physical: Int64, shape: shapeList}, nulls: .1},
	}
	for _, bc := range cases {
		b.Run(bc.name, func(b *testing.B) {
			c := bc.c
			r := rand.New(rand.NewSource(1))
			benchRows(&c, r, rows, bc.nulls, bc.few)
			ct, h, page, dict := benchPage(b, &c, r)
			var d Decoder
			var block Block
			slots := 0
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				require.NoError(b, d.Reset(&ct, &h, page, dict))
				slots = 0
				for d.Rows() > 0 {
					block.Reset(ct.Kind())
					if _, err := d.Next(&block, 4096); err != nil {
						b.Fatal(err)
					}
					slots += block.Values()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(slots), "ns/value")
		})
	}
}

// benchRows fills a column with rows of few different values, or of all different ones if few is 0; lists have 20 elements
// on average.
func benchRows(c *built, r *rand.Rand, n int, nulls float64, few int) {
	var pool []any
	for range few {
		pool = append(pool, c.randomValue(r, false))
	}
	_, repDef := c.shape.levels()
	value := func() any {
		switch {
		case r.Float64() < nulls:
			return nil
		case few > 0:
			return pool[r.Intn(few)]
		}
		return c.randomValue(r, false)
	}
	for range n {
		if repDef == 0 {
			c.rows = append(c.rows, value())
			continue
		}
		list := []any{}
		for range r.Intn(41) {
			list = append(list, value())
		}
		c.rows = append(c.rows, list)
	}
}

// benchPage writes the column as one page with levels and indices as common writers leave them: long runs.
func benchPage(b *testing.B, c *built, r *rand.Rand) (ColumnType, PageHeader, []byte, *Dictionary) {
	c.pageRows, c.plainRuns = len(c.rows), true
	pages := c.pages(r)
	maxDef, repDef := c.shape.levels()
	ct := ColumnType{Physical: c.physical, Unsigned: c.unsigned, MaxDef: maxDef, RepDef: repDef, List: repDef > 0, MaxRep: min(repDef, 1)}
	data := pages[len(pages)-1]
	if len(pages) == 1 {
		return ct, data.h, data.payload, nil
	}
	mem := alignedBytes(int(DictionarySize(&pages[0].h, &ct)))
	n, err := DecodeDictionary(mem, &pages[0].h, pages[0].payload, &ct)
	require.NoError(b, err)
	dict, err := OpenDictionary(mem[:n], &ct)
	require.NoError(b, err)
	return ct, data.h, data.payload, &dict
}

// alignedBytes makes memory that a dictionary can lie in.
func alignedBytes(n int) []byte {
	return rawBytes(make([]uint64, (n+7)/8))
}
