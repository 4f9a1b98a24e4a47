package workload

import (
	"os"
	"strconv"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDataSetsOfMiniPipe reads D-I and D-II with parquet-go: types, digits, whole numbers, nulls, and the size of a row
// of D-II, which is MiniPipe's 11 GB of 4 M rows.
func TestDataSetsOfMiniPipe(t *testing.T) {
	for _, c := range []struct {
		name                string
		dense, sparse, rows int
	}{{"d1", 13, 26, 2000}, {"d2", 504, 42, 300}} {
		files, err := Generate(t.Context(), Options{Model: model(t, c.name), Rows: int64(c.rows), Out: t.TempDir()})
		require.NoError(t, err)
		f, err := os.Open(files[0].Path)
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		file, err := parquet.OpenFile(f, files[0].Bytes)
		require.NoError(t, err)
		columns := file.Root().Columns()
		require.Len(t, columns, 1+c.dense+c.sparse)
		nulls, negative, distinct := 0, 0, map[string]bool{}
		rows := make([]parquet.Row, c.rows)
		reader := file.RowGroups()[0].Rows()
		n, _ := reader.ReadRows(rows) // the end of the rows is not an error here
		require.Equal(t, c.rows, n)
		require.NoError(t, reader.Close())
		for _, row := range rows {
			for i, v := range row[1:] {
				switch {
				case v.IsNull():
					nulls++
				case i < c.dense:
					require.Equal(t, parquet.Float, v.Kind())
					if v.Float() < 0 {
						negative++
					}
					if c.name == "d1" {
						require.Equal(t, v.Float(), float32(int(v.Float())))
					}
				default:
					text := string(v.ByteArray())
					require.Len(t, text, 8)
					_, err := strconv.ParseUint(text, 16, 32)
					require.NoError(t, err)
					distinct[text] = true
				}
			}
		}
		assert.Positive(t, negative, c.name)
		assert.Greater(t, len(distinct), 1000, c.name)
		assert.Equal(t, c.name == "d2", nulls == 0, c.name)
		if c.name == "d2" {
			assert.InDelta(t, 11e9/4e6, float64(files[0].Bytes)/float64(c.rows), 600, "bytes of a row")
		}
		assert.Equal(t, parquet.ByteArray, columns[len(columns)-1].Type().Kind())
		assert.Equal(t, "STRING", columns[len(columns)-1].Type().LogicalType().String())
	}
}
