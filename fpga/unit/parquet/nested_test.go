package parquet

import (
	"errors"
	"io"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// nestedSamples are small leaves of maps to lists, for tests that harm them.
func nestedSamples() []*built {
	r := rand.New(rand.NewSource(8))
	var all []*built
	for _, s := range []shape{shapeInMap, shapeInMapRequired} {
		for i, physical := range []Type{Int64, Float, Boolean, ByteArray} {
			for _, e := range []Encoding{Plain, RLEDictionary} {
				c := &built{shape: s, physical: physical, encoding: e, pageRows: 30, v2: i%2 == 0}
				c.randomRows(r, 80, 0.2, i%2 == 1)
				all = append(all, c)
			}
		}
	}
	return all
}

// chunkOf writes a column's pages one behind the other.
func (c *built) chunk(r *rand.Rand) []byte {
	var b []byte
	for _, p := range c.pages(r) {
		b = append(append(b, p.h.marshal()...), p.payload...)
	}
	return b
}

// readChunk reads a chunk in steps taken in turn, skipping where they are negative, and returns rows and their places.
func (c *built) readChunk(t require.TestingT, chunk []byte, levels int, steps ...int) (rows []any, places []int, err error) {
	var reader ChunkReader
	ct := c.columnType()
	if err := reader.Reset(ct, chunk, int64(levels), int64(len(c.rows))); err != nil {
		return nil, nil, err
	}
	var b Block
	at := 0
	for i := 0; ; i++ {
		step := steps[i%len(steps)]
		var n int
		if step < 0 {
			var skipped int64
			skipped, err = reader.Skip(int64(-step))
			n = int(skipped)
		} else {
			b.Reset(ct.Kind())
			n, err = reader.Next(&b, step)
		}
		if errors.Is(err, io.EOF) {
			return rows, places, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if step < 0 {
			at += n
			continue
		}
		require.Empty(t, broken(&b, &ct))
		rows = append(rows, rowsOf(&b, &ct)...)
		for range n {
			places = append(places, at)
			at++
		}
	}
}

// TestNestedKernelEqualsReference writes random lists in maps and reads them with kernel, in steps with skips between them,
// and reference.
func TestNestedKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawColumn(t, 0)
		c.shape = rapid.SampledFrom([]shape{shapeInMap, shapeInMapRequired}).Draw(t, "nesting")
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "layout")))
		c.randomRows(r, rapid.IntRange(0, 300).Draw(t, "how many"), rapid.SampledFrom([]float64{0, 0.03, 0.5, 1}).Draw(t, "how many nulls"), rapid.Bool().Draw(t, "few"))
		seed := rapid.Int64().Draw(t, "pages")
		levels := len(c.shred(rand.New(rand.NewSource(seed))))

		ref := reference{ct: c.columnType(), column: Column{Kind: c.physical.Kind(), List: true}}
		for _, p := range c.pages(rand.New(rand.NewSource(seed))) {
			require.NoError(t, ref.page(&p.h, p.payload), c)
		}
		requireSameRows(t, c.rows, ref.column.Rows, "reference of "+c.String())
		chunk := c.chunk(rand.New(rand.NewSource(seed)))
		got, _, err := c.readChunk(t, chunk, levels, 1<<20)
		require.NoError(t, err, c)
		requireSameRows(t, c.rows, got, "kernel of "+c.String())
		steps := rapid.SliceOfN(rapid.IntRange(-50, 80).Filter(func(n int) bool { return n != 0 }), 1, 6).Draw(t, "steps")
		got, places, err := c.readChunk(t, chunk, levels, steps...)
		require.NoError(t, err, c)
		for i, p := range places {
			require.True(t, same(c.rows[p], got[i]), "%v: steps %v: row %d: want %v, got %v", c, steps, p, c.rows[p], got[i])
		}
	})
}

// A run of one value may promise billions of entries in a few bytes: a block's bound ends that, and leaves it as it was.
func TestNestedBlockIsBounded(t *testing.T) {
	entries := make([]any, 5000)
	for i := range entries {
		entries[i] = []any{}
	}
	c := &built{shape: shapeInMap, physical: Int64, encoding: Plain, rows: []any{[]any{[]any{int64(1)}}, entries, []any{[]any{int64(2), nil}}}}
	r := rand.New(rand.NewSource(1))
	page := c.pages(r)[0]
	ct := c.columnType()
	var d Decoder
	require.NoError(t, d.Reset(&ct, &page.h, page.payload, nil))
	b := Block{MaxValues: 4000}
	n, err := d.Next(&b, 1)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = d.Next(&b, 1)
	require.ErrorIs(t, err, ErrLimit)
	require.Equal(t, []int32{1}, b.Lengths)
	require.Equal(t, []int32{1}, b.Inner)
	require.Equal(t, []int64{1}, b.I64)
}

func TestNestedLevelsMustNest(t *testing.T) {
	level := func(rep, def byte, v any) levelled { return levelled{rep, def, v} }
	for name, levels := range map[string][]levelled{
		"an empty map goes on":       {level(0, 1, nil), level(1, 3, nil)},
		"a null map goes on":         {level(0, 0, nil), level(2, 5, int64(1))},
		"an entry below its level":   {level(0, 5, int64(1)), level(1, 1, nil)},
		"an empty list goes on":      {level(0, 3, nil), level(2, 5, int64(1))},
		"a null list goes on":        {level(0, 5, int64(1)), level(1, 2, nil), level(2, 5, int64(1))},
		"an element below its level": {level(0, 5, int64(1)), level(2, 3, nil)},
	} {
		c := &built{shape: shapeInMap, physical: Int64, encoding: Plain}
		p := c.dataPage(rand.New(rand.NewSource(1)), levels, nil, 0)
		ct := c.columnType()
		require.True(t, requireAgreement(t, &ct, &p.h, p.payload, 0), name)
	}
}
