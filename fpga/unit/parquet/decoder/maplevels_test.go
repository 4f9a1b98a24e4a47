package decoder

import (
	"errors"
	"io"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/parquettest"
	"github.com/millrace/millrace/fpga/unit/parquet/reference"
)

// readChunk reads a chunk in steps taken in turn, skipping where they are negative, and returns rows and their places.
func readChunk(t require.TestingT, c *parquettest.Column, chunk []byte, levels int, steps ...int) (rows []any,
	places []int, err error) {
	var reader chunkReader
	ct := c.ColumnType()
	if err := reader.Reset(ct, chunk, int64(levels), int64(len(c.Rows))); err != nil {
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

// TestNestedKernelEqualsReference writes random lists in maps and in lists and reads them with kernel, in steps with
// skips between them, and reference.
func TestNestedKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawColumn(t, 0)
		c.Shape = rapid.SampledFrom([]parquettest.Shape{parquettest.ShapeInMap, parquettest.ShapeInMapRequired,
			parquettest.ShapeLists, parquettest.ShapeListsDeep}).Draw(t, "nesting")
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "layout")))
		c.FillRandom(r, rapid.IntRange(0, 300).Draw(t, "how many"),
			rapid.SampledFrom([]float64{0, 0.03, 0.5, 1}).Draw(t, "how many nulls"), rapid.Bool().Draw(t, "few"))
		seed := rapid.Int64().Draw(t, "pages")
		levels := len(c.Levels(rand.New(rand.NewSource(seed))))

		ref := reference.Chunk{Type: c.ColumnType()}
		for _, p := range c.Pages(rand.New(rand.NewSource(seed))) {
			require.NoError(t, ref.AddPage(&p.Header, p.Payload), c)
		}
		requireSameRows(t, c.Rows, ref.Rows, "reference of "+c.String())
		chunk := c.Chunk(rand.New(rand.NewSource(seed)))
		got, _, err := readChunk(t, c, chunk, levels, 1<<20)
		require.NoError(t, err, c)
		requireSameRows(t, c.Rows, got, "kernel of "+c.String())
		steps := rapid.SliceOfN(rapid.IntRange(-50, 80).Filter(func(n int) bool { return n != 0 }), 1, 6).Draw(t,
			"steps")
		got, places, err := readChunk(t, c, chunk, levels, steps...)
		require.NoError(t, err, c)
		for i, p := range places {
			require.True(t, same(c.Rows[p], got[i]), "%v: steps %v: row %d: want %v, got %v", c, steps, p, c.Rows[p],
				got[i])
		}
	})
}

// A run of one value may promise billions of entries in a few bytes: a block's bound ends that, and leaves it as it
// was.
func TestNestedBlockIsBounded(t *testing.T) {
	entries := make([]any, 5000)
	for i := range entries {
		entries[i] = []any{}
	}
	c := &parquettest.Column{Shape: parquettest.ShapeInMap, Physical: format.Int64, Encoding: format.Plain,
		Rows: []any{[]any{[]any{int64(1)}}, entries, []any{[]any{int64(2), nil}}}}
	r := rand.New(rand.NewSource(1))
	page := c.Pages(r)[0]
	ct := c.ColumnType()
	var d Decoder
	require.NoError(t, d.Reset(&ct, &page.Header, page.Payload, nil))
	b := Block{MaxValues: 4000}
	n, err := d.Next(&b, 1)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = d.Next(&b, 1)
	require.ErrorIs(t, err, format.ErrLimit)
	require.Equal(t, []int32{1}, b.Lengths)
	require.Equal(t, []int32{1}, b.Inner)
	require.Equal(t, []int64{1}, b.I64)
}

func TestNestedLevelsMustNest(t *testing.T) {
	level := func(rep, def byte, v any) parquettest.Level { return parquettest.Level{Rep: rep, Def: def, Value: v} }
	for name, levels := range map[string][]parquettest.Level{
		"an empty map goes on":       {level(0, 1, nil), level(1, 3, nil)},
		"a null map goes on":         {level(0, 0, nil), level(2, 5, int64(1))},
		"an entry below its level":   {level(0, 5, int64(1)), level(1, 1, nil)},
		"an empty list goes on":      {level(0, 3, nil), level(2, 5, int64(1))},
		"a null list goes on":        {level(0, 5, int64(1)), level(1, 2, nil), level(2, 5, int64(1))},
		"an element below its level": {level(0, 5, int64(1)), level(2, 3, nil)},
	} {
		c := &parquettest.Column{Shape: parquettest.ShapeInMap, Physical: format.Int64, Encoding: format.Plain}
		p := c.DataPage(rand.New(rand.NewSource(1)), levels, nil, 0)
		ct := c.ColumnType()
		require.True(t, requireAgreement(t, &ct, &p.Header, p.Payload, 0), name)
	}
}

// TestListsInLists shows the rule by example: the values of all levels in their order; null and empty lists contribute
// nothing.
func TestListsInLists(t *testing.T) {
	level := func(rep, def byte, v any) parquettest.Level { return parquettest.Level{Rep: rep, Def: def, Value: v} }
	c := &parquettest.Column{Shape: parquettest.ShapeListsDeep, Physical: format.Int64, Encoding: format.Plain}
	p := c.DataPage(rand.New(rand.NewSource(1)), []parquettest.Level{
		level(0, 6, int64(1)), level(3, 5, nil), level(2, 6, int64(3)), level(1, 6, int64(4)), // [[[1, null], [3]], [[4]]]
		level(0, 0, nil),                                                            // null
		level(0, 1, nil),                                                            // []
		level(0, 2, nil), level(1, 3, nil), level(2, 4, nil), level(2, 6, int64(5)), // [[], [null, [], [5]]]
		level(0, 2, nil), // [[]]
	}, nil, 0)
	ct := c.ColumnType()
	got, err := decodePage(&ct, &p.Header, p.Payload, nil)
	require.NoError(t, err)
	want := []any{[]any{int64(1), nil, int64(3), int64(4)}, nil, []any{}, []any{int64(5)}, []any{}}
	requireSameRows(t, want, got, "kernel")
	ref := reference.Chunk{Type: ct}
	require.NoError(t, ref.AddPage(&p.Header, p.Payload))
	require.Equal(t, want, ref.Rows)
}

func TestListsInListsMustNest(t *testing.T) {
	level := func(rep, def byte, v any) parquettest.Level { return parquettest.Level{Rep: rep, Def: def, Value: v} }
	full := level(0, 6, int64(1))
	for name, levels := range map[string][]parquettest.Level{
		"an empty row goes on":            {level(0, 1, nil), level(1, 6, int64(1))},
		"a null row goes on":              {level(0, 0, nil), level(2, 6, int64(1))},
		"an entry below its level":        {full, level(1, 1, nil)},
		"an empty innermost list goes on": {level(0, 4, nil), level(3, 6, int64(1))},
		"a null innermost list goes on":   {full, level(1, 3, nil), level(3, 6, int64(1))},
		"an element below its level":      {full, level(3, 4, nil)},
		"an empty middle list goes on":    {level(0, 2, nil), level(3, 6, int64(1))},
	} {
		c := &parquettest.Column{Shape: parquettest.ShapeListsDeep, Physical: format.Int64, Encoding: format.Plain}
		ct := c.ColumnType()
		p := c.DataPage(rand.New(rand.NewSource(1)), levels, nil, 0)
		require.True(t, requireAgreement(t, &ct, &p.Header, p.Payload, 0), name)
		// The same where the levels lie in two batches.
		var before []parquettest.Level
		for len(before) < levelBatchSize-1 {
			before = append(before, full)
		}
		p = c.DataPage(rand.New(rand.NewSource(1)), append(before, levels...), nil, 0)
		require.True(t, requireAgreement(t, &ct, &p.Header, p.Payload, 0), name)
	}
}
