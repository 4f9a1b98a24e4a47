package ngram_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/ngram"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
)

func TestNGram(t *testing.T) {
	raw := sigridhash.Raw
	for _, c := range []struct {
		name    string
		n       int64
		lengths []int32
		ids     []int64
	}{
		{"one", 1, []int32{3, 0, 1}, []int64{raw(7, 0), raw(8, 0), raw(7, 0), raw(-1, 0)}},
		{"two", 2, []int32{2, 0, 0}, []int64{raw(8, raw(7, 0)), raw(7, raw(8, 0))}},
		{"as long as the list", 3, []int32{1, 0, 0}, []int64{raw(7, raw(8, raw(7, 0)))}},
		{"longer than every list", 4, []int32{0, 0, 0}, []int64{}},
		{"longest", ngram.MaxN, []int32{0, 0, 0}, []int64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lengths, ids := []int32{3, 0, 1}, []int64{7, 8, 7, -1}
			kept, err := ngram.NGram(lengths, ids, c.n)
			require.NoError(t, err)
			require.Equal(t, c.lengths, lengths)
			require.Equal(t, c.ids, ids[:kept])
		})
	}
}

func TestArgumentsThatDoNotFit(t *testing.T) {
	for name, lengths := range map[string][]int32{
		"too few": {1, 1}, "too many": {2, 2}, "negative": {4, -1}, "of nothing": {},
		"overflow": {math.MaxInt32, math.MaxInt32},
	} {
		ids := []int64{1, 2, 3}
		_, err := ngram.NGram(lengths, ids, 1)
		require.ErrorIs(t, err, ngram.ErrLengths, name)
		require.Equal(t, []int64{1, 2, 3}, ids)
	}
	for _, n := range []int64{math.MinInt64, -1, 0, ngram.MaxN + 1, math.MaxInt64} {
		_, err := ngram.NGram(nil, nil, n)
		require.ErrorIs(t, err, ngram.ErrN)
		_, err = ngram.List(nil, nil, nil, n)
		require.ErrorIs(t, err, ngram.ErrN)
	}
	kept, err := ngram.NGram(nil, nil, 1)
	require.NoError(t, err)
	require.Zero(t, kept)
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lists := rapid.SliceOf(rapid.SliceOfN(rapid.Int64(), 0, 20)).Draw(t, "lists")
		n := rapid.Int64Range(1, ngram.MaxN).Draw(t, "n")
		var lengths, wantLengths []int32
		var ids []int64
		want := []int64{}
		for _, l := range lists {
			lengths, ids = append(lengths, int32(len(l))), append(ids, l...)
			windows := ngram.Reference(l, n)
			wantLengths, want = append(wantLengths, int32(len(windows))), append(want, windows...)
		}
		kept, err := ngram.NGram(lengths, ids, n)
		require.NoError(t, err)
		require.Equal(t, wantLengths, lengths)
		require.Equal(t, want, append([]int64{}, ids[:kept]...))
	})
}

func TestList(t *testing.T) {
	for _, c := range []struct {
		name    string
		n       int64
		lengths []int32
		ids     []int64
	}{
		{"one", 1, []int32{3, 0, 1}, []int64{7, 8, 9, -1}},
		{"two", 2, []int32{4, 0, 1}, []int64{7, 8, 8, 9, -1}},
		{"as long as the list", 3, []int32{3, 0, 1}, []int64{7, 8, 9, -1}},
		{"longer than every list", ngram.MaxN, []int32{3, 0, 1}, []int64{7, 8, 9, -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lengths := []int32{3, 0, 1}
			got, err := ngram.List([]int64{5}, lengths, []int64{7, 8, 9, -1}, c.n)
			require.NoError(t, err)
			require.Equal(t, c.lengths, lengths)
			require.Equal(t, append([]int64{5}, c.ids...), got)
		})
	}
}

// TestListBounds checks the limit on the ids of a list from both sides, and that nothing is written beyond it.
func TestListBounds(t *testing.T) {
	const n = 16
	most := ngram.MaxListed/n + n - 1
	for _, length := range []int{most, most + 1} {
		ids, lengths := make([]int64, length), []int32{int32(length)}
		got, err := ngram.List(nil, lengths, ids, n)
		want, ok := ngram.ListReference(ids, n)
		if length == most {
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, []int32{ngram.MaxListed}, lengths)
			require.Equal(t, want, got)
			continue
		}
		require.ErrorIs(t, err, ngram.ErrTooLong)
		require.False(t, ok)
		require.Equal(t, []int32{int32(length)}, lengths)
		require.Empty(t, got)
	}
}

func TestListEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lists := rapid.SliceOf(rapid.SliceOfN(rapid.Int64(), 0, 20)).Draw(t, "lists")
		n := rapid.Int64Range(1, ngram.MaxN).Draw(t, "n")
		var lengths, wantLengths []int32
		var ids []int64
		want := []int64{}
		for _, l := range lists {
			lengths, ids = append(lengths, int32(len(l))), append(ids, l...)
			listed, ok := ngram.ListReference(l, n)
			require.True(t, ok)
			wantLengths, want = append(wantLengths, int32(len(listed))), append(want, listed...)
		}
		got, err := ngram.List([]int64{}, lengths, ids, n)
		require.NoError(t, err)
		require.Equal(t, wantLengths, lengths)
		require.Equal(t, want, got)
	})
}

func FuzzNGram(f *testing.F) {
	f.Add([]byte{3, 0, 1}, []byte{1, 2, 3, 4}, int64(2))
	f.Fuzz(func(t *testing.T, counts, values []byte, n int64) {
		lengths, ids := make([]int32, len(counts)), make([]int64, len(values))
		for i, c := range counts {
			lengths[i] = int32(int8(c))
		}
		for i, v := range values {
			ids[i] = int64(int8(v))
		}
		listed, errOfList := ngram.List(nil, slices.Clone(lengths), ids, n)
		kept, err := ngram.NGram(lengths, ids, n)
		require.Equal(t, err == nil, errOfList == nil)
		if err == nil {
			require.LessOrEqual(t, kept, len(ids))
			require.LessOrEqual(t, len(listed), len(ids)*int(n))
			require.GreaterOrEqual(t, len(listed), len(ids))
		}
	})
}

func BenchmarkNGram(b *testing.B) {
	all, lengths, ids := make([]int32, 1024), make([]int32, 1024), make([]int64, 20*1024)
	for i := range all {
		all[i] = 20
	}
	for b.Loop() {
		copy(lengths, all)
		if _, err := ngram.NGram(lengths, ids, 2); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/value")
}
