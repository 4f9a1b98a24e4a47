package format_test

import (
	"bytes"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/parquettest"
	"github.com/millrace/millrace/internal/foreignparquettest"
)

// FuzzFooter reads any bytes as a file's footer and offset indexes: every range that is read lies inside the file.
func FuzzFooter(f *testing.F) {
	r := rand.New(rand.NewSource(1))
	for _, c := range parquettest.Samples()[:20] {
		f.Add(c.File(r))
	}
	f.Add(foreignparquettest.Twin())
	for _, file := range foreignparquettest.Files() {
		f.Add(file.Bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := format.ReadFooter(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			parquettest.RequireTyped(t, err, "footer")
			return
		}
		rows := int64(0)
		for g := range file.RowGroups {
			rows += file.RowGroups[g].Rows
			require.Len(t, file.RowGroups[g].Columns, len(file.Leaves))
			for l := range file.Leaves {
				chunk, leaf, err := file.Chunk(g, l)
				if err != nil {
					parquettest.RequireTyped(t, err, "chunk")
					continue
				}
				columnType := leaf.ColumnType(chunk.Codec)
				require.NoError(t, columnType.Validate())
				require.GreaterOrEqual(t, chunk.Offset, int64(4))
				require.LessOrEqual(t, chunk.Offset+chunk.Compressed, int64(len(b)))
				locations, err := format.ReadOffsetIndex(bytes.NewReader(b), file, g, l)
				if err != nil {
					parquettest.RequireTyped(t, err, "offset index")
				}
				for _, p := range locations {
					require.GreaterOrEqual(t, p.Offset, chunk.Offset)
					require.LessOrEqual(t, p.Offset+int64(p.Size), chunk.Offset+chunk.Compressed)
				}
			}
		}
		require.Equal(t, file.Rows, rows)
	})
}
