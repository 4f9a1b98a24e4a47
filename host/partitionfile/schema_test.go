package partitionfile

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/partition/schema"
)

type describedRow struct {
	ID    int64             `parquet:"id"`
	Small *int32            `parquet:"small,optional"`
	X     float32           `parquet:"x"`
	Name  string            `parquet:"name"`
	List  []int64           `parquet:"list,list"`
	Map   map[int64]float32 `parquet:"map"`
}

// TestDescriptionsSuffice: a description that went through JSON has every column as the file itself does, and the bytes
// and values of its leaves.
func TestDescriptionsSuffice(t *testing.T) {
	var b bytes.Buffer
	rows := []describedRow{
		{ID: 1, List: []int64{1, 2, 3}, Map: map[int64]float32{1: 2, 3: 4}}, {ID: 2}, {ID: 3, List: []int64{4}},
	}
	require.NoError(t, parquet.Write(&b, rows))
	path := write(t, "a.parquet", b.Bytes())
	v, err := Resolver{}.Describe(t.Context(), source.ParseLocation(path), Parquet, text.Options{}, false)
	require.NoError(t, err)
	text1, err := json.Marshal(v)
	require.NoError(t, err)
	var read Description
	require.NoError(t, json.Unmarshal(text1, &read))

	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	p, err := partition.Open(t.Context(), "a.parquet", f, int64(b.Len()), program.Parquet, partition.Options{})
	require.NoError(t, err)
	want, _ := schema.Columns(p, text.Options{})
	require.Len(t, read.Columns, len(want))
	leaves := make(map[string]Leaf)
	for i := range want {
		got, err := read.Columns[i].Info()
		require.NoError(t, err)
		assert.Equal(t, want[i], got)
		sum := int64(0)
		for _, l := range read.Columns[i].Leaves {
			leaves[l.Name], sum = l, sum+l.Compressed
		}
		assert.Equal(t, read.Columns[i].Compressed, sum)
	}
	assert.EqualValues(t, 3, leaves["id"].Values)
	assert.EqualValues(t, 3, leaves["small"].Values, "nulls count")
	assert.EqualValues(t, 5, leaves["list"].Values, "an empty list counts one")
	assert.EqualValues(t, 4, leaves[want[5].Map.Keys].Values, "and an empty map")
	assert.EqualValues(t, 4, leaves[want[5].Map.Values].Values)
}

// TestDamagedDescriptions: a description comes from a file that anybody may have written.
func TestDamagedDescriptions(t *testing.T) {
	for name, c := range map[string]struct {
		column Column
		says   string
	}{
		"of an earlier version": {Column{Name: "a"}, `"a" has no schema: make it again`},
		"no kind":               {Column{Name: "a", Schema: &Schema{Kind: "int"}}, `the kind "int"`},
		"a map without leaves":  {Column{Name: "a", Schema: &Schema{Kind: "int64", Map: &MapSchema{}}}, "without names"},
		"scores of no kind": {Column{Name: "a", Schema: &Schema{Kind: "int64",
			Map: &MapSchema{Keys: "k", Values: "v", Scores: "s"}}}, `the kind ""`},
	} {
		_, err := c.column.Info()
		assert.ErrorContains(t, err, c.says, name)
	}
	info, err := (&Column{Name: "a", Refused: "lists of structs"}).Info()
	require.NoError(t, err)
	assert.ErrorContains(t, info.Unsupported, "lists of structs")
}
