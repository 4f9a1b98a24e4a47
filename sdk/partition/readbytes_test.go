package partition_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor/processortest"
)

// TestReadBytes compares the bytes that are read for rows with the file's pages: all rows are the chunks, one row is
// the page of each column that it is in, and small chunks are read whole. A chunk without a page index has pages of
// equal rows, and damage where its first page is makes it one page.
func TestReadBytes(t *testing.T) {
	const rows = 40_000
	data := processortest.WriteParquet(t, processortest.Layout{Rows: rows, Group: rows, Page: 30_000, Seed: 3})
	indexed := processortest.Open(t, data, false)
	without := func(data []byte) *partition.Partition {
		p, err := partition.Open(t.Context(), "p", bytes.NewReader(data), int64(len(data)), program.Parquet,
			partition.Options{})
		require.NoError(t, err)
		for i := range p.File.RowGroups[0].Columns {
			p.File.RowGroups[0].Columns[i].OffsetIndexOffset, p.File.RowGroups[0].Columns[i].OffsetIndexLength = 0, 0
		}
		return p
	}
	bare := without(data)
	damaged := bytes.Clone(data)
	small, large := int64(0), int64(0)
	for _, c := range indexed.File.RowGroups[0].Columns {
		if c.Compressed <= partition.SmallChunk {
			small += c.Compressed
			continue
		}
		large += c.Compressed
		copy(damaged[c.DataOffset:], bytes.Repeat([]byte{0xff}, 16))
	}
	require.Positive(t, large)
	for name, p := range map[string]*partition.Partition{"indexed": indexed, "bare": bare} {
		assert.Equal(t, small+large, p.ReadBytes(0, 0, rows), name)
		assert.Zero(t, p.ReadBytes(0, 5, 0), name)
		want := int64(0)
		for i := range indexed.File.Leaves {
			c := &indexed.File.RowGroups[0].Columns[i]
			if x := indexed.ReadPageIndex(0, &indexed.File.Leaves[i], 0); c.Compressed > partition.SmallChunk {
				page := x[x.PageOf(rows/4)]
				want += c.DataOffset - c.Offset + int64(page.Size)
			}
		}
		assert.InEpsilon(t, small+want, p.ReadBytes(0, rows/4, 1), 0.05, name)
		assert.Equal(t, small+large, p.ReadBytes(0, 0, rows-1), "the rest is small: %s", name)
		two := p.ReadBytes(0, 0, rows/2) + p.ReadBytes(0, rows/2, rows/2)
		assert.Greater(t, two, small+large, name)
		assert.LessOrEqual(t, two, 2*(small+large), name)
	}
	assert.Equal(t, small+large, without(damaged).ReadBytes(0, rows/2, 1), "each chunk is one page")

	lines := processortest.TextRows(100, 0)
	text, err := partition.Open(t.Context(), "t", bytes.NewReader(lines), int64(len(lines)), program.CriteoTSV,
		partition.Options{Every: 10})
	require.NoError(t, err)
	assert.EqualValues(t, len(lines), text.ReadBytes(0, 0, 100))
	assert.EqualValues(t, len(lines)/4, text.ReadBytes(0, 50, 25))
}
