package partitionfile

import (
	"bytes"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/text"
)

// coveredRow is a row whose columns have values in some rows.
type coveredRow struct {
	Always int64             `parquet:"always"`
	Some   *float64          `parquet:"some,optional"`
	List   []int64           `parquet:"list,list"`
	Map    map[int32]float32 `parquet:"map"`
}

// TestCoverage checks the share of rows with a value: by statistics, where a file has them, by counting, and over files
// of which one lacks columns.
func TestCoverage(t *testing.T) {
	rows := make([]coveredRow, 100)
	for i := range rows {
		x := float64(i)
		if i%4 > 0 {
			rows[i].Some = &x
		}
		rows[i].List = make([]int64, i%5)
		if i < 10 {
			rows[i].Map = map[int32]float32{1: 1}
		}
	}
	var whole, lacking bytes.Buffer
	require.NoError(t, pq.Write(&whole, rows, pq.MaxRowsPerRowGroup(30)))
	require.NoError(t, pq.Write(&lacking, make([]struct {
		Always int64 `parquet:"always"`
		New    int32 `parquet:"new"`
	}, 60)))
	paths := []string{write(t, "a.parquet", whole.Bytes()), write(t, "b.parquet", lacking.Bytes())}
	var silent, counted []Description
	for _, path := range paths {
		d, err := Describe(t.Context(), path, Parquet, text.Options{}, false)
		require.NoError(t, err)
		silent = append(silent, d)
		d, err = Describe(t.Context(), path, Parquet, text.Options{}, true)
		require.NoError(t, err)
		counted = append(counted, d)
	}
	v := Cover(counted)
	assert.EqualValues(t, 160, v.Rows)
	present := map[string]int64{}
	for _, c := range v.Columns {
		assert.Zero(t, c.UnknownRows)
		require.NotNil(t, c.Share)
		assert.InDelta(t, float64(c.PresentRows)/160, *c.Share, 1e-12)
		present[c.Name] = c.PresentRows
		switch c.Name {
		case "always":
			assert.Equal(t, "100 %", c.Describe())
		case "new":
			assert.Equal(t, paths[:1], c.LackedBy)
			assert.Equal(t, "37.5 %, absent in 1 partition: "+paths[0], c.Describe())
		default:
			assert.Equal(t, 1, c.Lacked, c.Name)
		}
	}
	assert.Equal(t, map[string]int64{"always": 160, "some": 75, "list": 80, "map": 10, "new": 60}, present)
	for _, c := range Cover(silent).Columns {
		if c.UnknownRows == 0 {
			assert.Equal(t, present[c.Name], c.PresentRows, "statistics of %s", c.Name)
			continue
		}
		assert.Nil(t, c.Share)
		assert.Contains(t, c.Describe(), "unknown")
	}
	assert.NotNil(t, silent[0].Columns[0].PresentRows, "required columns need no statistics")

	d, err := Describe(t.Context(), write(t, "a.tsv", []byte(criteoText)), CriteoTSV, text.Options{}, true)
	require.NoError(t, err)
	assert.NotNil(t, d.Columns[0].PresentRows)
	assert.Nil(t, d.Columns[1].PresentRows, "text is not counted")
	assert.Empty(t, Cover(nil).Columns)
}
