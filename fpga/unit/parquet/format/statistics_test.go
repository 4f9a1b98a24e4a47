package format

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPresentRows(t *testing.T) {
	flat, list := Leaf{MaxDef: 1}, Leaf{List: true, MaxRep: 1, MaxDef: 3, RepDef: 2}
	for name, test := range map[string]struct {
		leaf   Leaf
		values int64
		nulls  int64
		levels []int64
		want   int64 // of ten rows
	}{
		"required":                   {Leaf{}, 10, -1, nil, 10},
		"nothing is said":            {flat, 10, -1, nil, -1},
		"a count of nulls":           {flat, 10, 3, nil, 7},
		"all are null":               {flat, 10, 10, nil, 0},
		"more nulls than rows":       {flat, 10, 11, nil, -1},
		"negative nulls":             {flat, 10, -7, nil, -1},
		"levels":                     {flat, 10, -1, []int64{4, 6}, 6},
		"levels before nulls":        {flat, 10, 1, []int64{4, 6}, 6},
		"levels of another sum":      {flat, 10, 1, []int64{4, 7}, 9},
		"levels that are negative":   {flat, 10, 1, []int64{-1, 11}, 9},
		"too few levels":             {flat, 10, -1, []int64{10}, -1},
		"nested in a group":          {Leaf{MaxDef: 2}, 10, -1, []int64{1, 2, 7}, 7},
		"lists":                      {list, 25, 5, []int64{1, 2, 4, 18}, 7},
		"lists without levels":       {list, 25, 5, nil, -1},
		"more empty lists than rows": {list, 25, 5, []int64{10, 2, 0, 13}, -1},
		"lists in a map": {Leaf{List: true, MaxRep: 2, MaxDef: 2, EntryDef: 1, RepDef: 2}, 25, 5, []int64{1, 2, 22},
			-1},
	} {
		t.Run(name, func(t *testing.T) {
			c := Chunk{NumValues: test.values, nulls: test.nulls, levels: test.levels}
			c.countPresentRows(&test.leaf, 10)
			assert.Equal(t, test.want, c.PresentRows)
			assert.Nil(t, c.levels, "they are not kept")
		})
	}
}

// TestStatisticsOfAnotherForm checks that statistics that the specification does not know are left out, and that the
// fields behind them are read.
func TestStatisticsOfAnotherForm(t *testing.T) {
	read := func(f func(r *compactReader, c *Chunk), b ...byte) Chunk {
		c := Chunk{nulls: -1}
		r := &compactReader{src: append(b, 0xAB)}
		f(r, &c)
		require.NoError(t, r.err)
		require.Equal(t, len(b), r.position)
		return c
	}
	statistics := func(r *compactReader, c *Chunk) { r.readStatistics(thriftStruct, c) }
	sizes := func(r *compactReader, c *Chunk) { r.readSizeStatistics(thriftStruct, c) }
	assert.EqualValues(t, 5, read(statistics, 3<<4|thriftInt64, 10, 0).nulls)
	assert.EqualValues(t, -1, read(statistics, 3<<4|thriftInt32, 10, 0).nulls, "of 32 bits")
	assert.EqualValues(t, -1, read(func(r *compactReader, c *Chunk) { r.readStatistics(thriftInt64, c) }, 10).nulls)
	assert.Equal(t, []int64{1, 2}, read(sizes, 3<<4|thriftList, 2<<4|thriftInt64, 2, 4, 0).levels)
	assert.Empty(t, read(sizes, 3<<4|thriftList, 2<<4|thriftInt32, 2, 4, 0).levels)
	assert.Empty(t, read(sizes, 3<<4|thriftInt64, 2, 0).levels)
	long := append([]byte{3<<4 | thriftList, 15<<4 | thriftInt64, 100}, make([]byte, 101)...)
	assert.Len(t, read(sizes, long...).levels, maxLevel+2)
}
