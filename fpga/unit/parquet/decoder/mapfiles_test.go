package decoder

import (
	"bytes"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/reference"
)

// What another library writes as Go maps is what the brief of DPP's tables needs.
func TestMapsOfAnotherWriter(t *testing.T) {
	type row struct {
		Label  float32                     `parquet:"label"`
		Dense  map[int32]float32           `parquet:"float_features"`
		IDs    map[int32][]int64           `parquet:"id_list_features"`
		Scored map[int32]map[int64]float32 `parquet:"id_score_list_features"`
		Names  map[string]int64            `parquet:"names"`
	}
	rows := []row{
		{Dense: map[int32]float32{7: 1.5}, IDs: map[int32][]int64{3: {10, 11}},
			Scored: map[int32]map[int64]float32{9: {100: 0.5}}},
		{},
		{IDs: map[int32][]int64{3: nil}, Names: map[string]int64{"a": 1}},
	}
	var b bytes.Buffer
	require.NoError(t, pq.Write(&b, rows))
	f, err := format.ReadFooter(bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(t, err)
	require.Len(t, f.Maps, 4)
	want := map[string][]any{
		"float_features": {[]any{[]any{int64(7)}, []any{float32(1.5)}}, []any{[]any{}, []any{}},
			[]any{[]any{}, []any{}}},
		"id_list_features": {[]any{[]any{int64(3)}, []any{[]any{int64(10), int64(11)}}}, []any{[]any{}, []any{}},
			[]any{[]any{int64(3)}, []any{[]any{}}}},
		"id_score_list_features": {[]any{[]any{int64(9)}, []any{[]any{int64(100)}}, []any{[]any{float32(0.5)}}},
			[]any{[]any{}, []any{}, []any{}}, []any{[]any{}, []any{}, []any{}}},
	}
	for name, rows := range want {
		m, ok := f.Map(name)
		require.True(t, ok, name)
		require.NoError(t, m.Unsupported)
		leaves := []int{m.Keys, m.Values}
		if m.Scores >= 0 {
			leaves = append(leaves, m.Scores)
		}
		for i, leaf := range leaves {
			ref, err := reference.ReadColumn(bytes.NewReader(b.Bytes()), f, 0, leaf)
			require.NoError(t, err)
			got, _, err := readKernel(t, bytes.NewReader(b.Bytes()), f, 0, leaf)
			require.NoError(t, err)
			requireSameRows(t, ref.Rows, got, name)
			for r := range rows {
				have := ref.Rows[r]
				if have == nil {
					have = []any{}
				}
				require.Equal(t, rows[r].([]any)[i], have, "%s, row %d", name, r)
			}
		}
	}
	m, ok := f.Map("names")
	require.True(t, ok)
	require.NoError(t, m.Unsupported)
	ref, err := reference.ReadColumn(bytes.NewReader(b.Bytes()), f, 0, m.Keys)
	require.NoError(t, err)
	require.Equal(t, []any{[]byte("a")}, ref.Rows[2])
	_, ok = f.Map("label")
	require.False(t, ok)
}
