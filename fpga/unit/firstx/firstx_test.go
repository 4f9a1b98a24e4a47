package firstx_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/firstx"
)

func TestFirstX(t *testing.T) {
	for _, c := range []struct {
		name    string
		n       int64
		lengths []int32
		values  []int64
	}{
		{"negative", -1, []int32{0, 0, 0, 0}, []int64{}},
		{"none", 0, []int32{0, 0, 0, 0}, []int64{}},
		{"one", 1, []int32{1, 0, 1, 1}, []int64{1, 4, 5}},
		{"two", 2, []int32{2, 0, 1, 2}, []int64{1, 2, 4, 5, 6}},
		{"as many as there are", 3, []int32{3, 0, 1, 3}, []int64{1, 2, 3, 4, 5, 6, 7}},
		{"more than there are", math.MaxInt64, []int32{3, 0, 1, 3}, []int64{1, 2, 3, 4, 5, 6, 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lengths, values := []int32{3, 0, 1, 3}, []int64{1, 2, 3, 4, 5, 6, 7}
			kept, err := firstx.FirstX(lengths, values, c.n)
			require.NoError(t, err)
			require.Equal(t, c.lengths, lengths)
			require.Equal(t, c.values, values[:kept])
		})
	}
}

func TestLengthsThatDoNotFit(t *testing.T) {
	for name, lengths := range map[string][]int32{
		"too few": {1, 1}, "too many": {2, 2}, "negative": {4, -1}, "of nothing": {},
		"overflow": {math.MaxInt32, math.MaxInt32},
	} {
		values := []string{"a", "b", "c"}
		_, err := firstx.FirstX(lengths, values, 1)
		require.ErrorIs(t, err, firstx.ErrLengths, name)
		require.Equal(t, []string{"a", "b", "c"}, values)
	}
	kept, err := firstx.FirstX([]int32{}, []float32{}, 1)
	require.NoError(t, err)
	require.Zero(t, kept)
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lists := rapid.SliceOf(rapid.SliceOfN(rapid.Int64(), 0, 6)).Draw(t, "lists")
		n := rapid.Int64Range(-2, 8).Draw(t, "n")
		var lengths, wantLengths []int32
		var values, want []int64
		for _, l := range lists {
			lengths = append(lengths, int32(len(l)))
			values = append(values, l...)
			first := firstx.Reference(l, n)
			wantLengths = append(wantLengths, int32(len(first)))
			want = append(want, first...)
		}
		kept, err := firstx.FirstX(lengths, values, n)
		require.NoError(t, err)
		require.Equal(t, wantLengths, lengths)
		require.Equal(t, len(want), kept)
		for i := range want {
			require.Equal(t, want[i], values[i])
		}
	})
}

func BenchmarkFirstX(b *testing.B) {
	all, source := make([]int32, 1024), make([]int64, 20*1024)
	lengths, values := make([]int32, len(all)), make([]int64, len(source))
	for i := range all {
		all[i] = 20
	}
	for b.Loop() {
		copy(lengths, all)
		if _, err := firstx.FirstX(lengths, values, 10); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(values)), "ns/value")
}
