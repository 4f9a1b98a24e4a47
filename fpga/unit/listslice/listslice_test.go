package listslice_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/listslice"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		name       string
		start, end int64
		lengths    []int32
		ids        []int64
	}{
		{"all", 0, listslice.NoEnd, []int32{4, 0, 1}, []int64{1, 2, 3, 4, 5}},
		{"first", 0, 2, []int32{2, 0, 1}, []int64{1, 2, 5}},
		{"last", -2, listslice.NoEnd, []int32{2, 0, 1}, []int64{3, 4, 5}},
		{"without the first", 1, listslice.NoEnd, []int32{3, 0, 0}, []int64{2, 3, 4}},
		{"without the last", 0, -1, []int32{3, 0, 0}, []int64{1, 2, 3}},
		{"inner", 1, -1, []int32{2, 0, 0}, []int64{2, 3}},
		{"from the end on both sides", -3, -1, []int32{2, 0, 0}, []int64{2, 3}},
		{"from the end to an element", -4, 1, []int32{1, 0, 1}, []int64{1, 5}},
		{"nothing", 2, 2, []int32{0, 0, 0}, []int64{}},
		{"backwards", 3, 1, []int32{0, 0, 0}, []int64{}},
		{"far away", math.MaxInt64 - 1, listslice.NoEnd, []int32{0, 0, 0}, []int64{}},
		{"from far before", math.MinInt64, 1, []int32{1, 0, 1}, []int64{1, 5}},
		{"to far before", 0, math.MinInt64, []int32{0, 0, 0}, []int64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lengths, ids := []int32{4, 0, 1}, []int64{1, 2, 3, 4, 5}
			kept, err := listslice.Cut(lengths, ids, c.start, c.end)
			require.NoError(t, err)
			require.Equal(t, c.lengths, lengths)
			require.Equal(t, c.ids, ids[:kept])
		})
	}
}

func TestLength(t *testing.T) {
	for _, c := range []struct{ start, end, want int64 }{
		{0, 10, 10}, {2, 5, 3}, {-10, listslice.NoEnd, 10}, {-3, -1, 2}, {5, 2, 0}, {-1, -5, 0}, {0, 0, 0},
		{0, listslice.MaxLength, listslice.MaxLength}, {-listslice.MaxLength, listslice.NoEnd, listslice.MaxLength},
		{-1, math.MinInt64, 0},
	} {
		got, err := listslice.Length(c.start, c.end)
		require.NoError(t, err, "%+v", c)
		require.Equal(t, c.want, got, "%+v", c)
	}
	for _, c := range [][2]int64{
		{0, listslice.NoEnd}, {0, -1}, {-5, 5}, {0, listslice.MaxLength + 1}, {-listslice.MaxLength - 1, listslice.NoEnd},
		{math.MinInt64, listslice.NoEnd}, {math.MinInt64, -1}, {math.MinInt64, 0}, {1, math.MinInt64},
	} {
		_, err := listslice.Length(c[0], c[1])
		require.ErrorIs(t, err, listslice.ErrLength, "%v", c)
	}
}

func TestArgumentsThatDoNotFit(t *testing.T) {
	for name, lengths := range map[string][]int32{
		"too few": {1, 1}, "too many": {2, 2}, "negative": {4, -1}, "of nothing": {},
		"overflow": {math.MaxInt32, math.MaxInt32},
	} {
		ids := []int64{1, 2, 3}
		_, err := listslice.Cut(lengths, ids, 1, 2)
		require.ErrorIs(t, err, listslice.ErrLengths, name)
		require.ErrorIs(t, listslice.Pad(make([]int64, 3*len(lengths)), lengths, ids, 3, 0), listslice.ErrLengths, name)
		require.Equal(t, []int64{1, 2, 3}, ids)
	}
	for name, c := range map[string]struct {
		room   int
		length int64
	}{"no room": {5, 3}, "too much room": {7, 3}, "longer lists": {2, 1}, "below nothing": {0, -1},
		"above the limit": {2 * (listslice.MaxLength + 1), listslice.MaxLength + 1}} {
		err := listslice.Pad(make([]int64, c.room), []int32{2, 1}, []int64{1, 2, 3}, c.length, 0)
		require.ErrorIs(t, err, listslice.ErrLengths, name)
	}
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lists := rapid.SliceOf(rapid.SliceOfN(rapid.Float32(), 0, 12)).Draw(t, "lists")
		place := rapid.OneOf(rapid.Int64Range(-15, 15), rapid.Int64())
		start, end := place.Draw(t, "start"), rapid.OneOf(place, rapid.Just(int64(listslice.NoEnd))).Draw(t, "end")
		length, err := listslice.Length(start, end)
		pad := rapid.Float32().Draw(t, "pad")
		var lengths, cutLengths, padLengths []int32
		var values, cut, padded []float32
		for _, l := range lists {
			lengths, values = append(lengths, int32(len(l))), append(values, l...)
			part := listslice.Reference(l, start, end, 0, pad)
			cutLengths, cut = append(cutLengths, int32(len(part))), append(cut, part...)
			if err == nil {
				whole := listslice.Reference(l, start, end, length, pad)
				padLengths, padded = append(padLengths, int32(len(whole))), append(padded, whole...)
			}
		}
		kept, cutErr := listslice.Cut(lengths, values, start, end)
		require.NoError(t, cutErr)
		require.Equal(t, cutLengths, lengths)
		require.Equal(t, append([]float32{}, cut...), append([]float32{}, values[:kept]...))
		if err == nil {
			dst := make([]float32, int(length)*len(lists))
			require.NoError(t, listslice.Pad(dst, lengths, values[:kept], length, pad))
			require.Equal(t, padLengths, lengths)
			require.Equal(t, append([]float32{}, padded...), append([]float32{}, dst...))
		}
	})
}

func FuzzCut(f *testing.F) {
	f.Add([]byte{3, 0, 1}, []byte{1, 2, 3, 4}, int64(-2), int64(9))
	f.Fuzz(func(t *testing.T, counts, values []byte, start, end int64) {
		lengths := make([]int32, len(counts))
		for i, c := range counts {
			lengths[i] = int32(int8(c))
		}
		kept, err := listslice.Cut(lengths, values, start, end)
		if err != nil {
			return
		}
		require.LessOrEqual(t, kept, len(values))
		if length, err := listslice.Length(start, end); err == nil {
			require.NoError(t, listslice.Pad(make([]byte, int(length)*len(lengths)), lengths, values[:kept], length, 7))
		}
	})
}

func BenchmarkCut(b *testing.B) {
	all, lengths, ids := make([]int32, 1024), make([]int32, 1024), make([]int64, 20*1024)
	dst := make([]int64, 32*1024)
	for i := range all {
		all[i] = 20
	}
	for b.Loop() {
		copy(lengths, all)
		kept, err := listslice.Cut(lengths, ids, -10, listslice.NoEnd)
		if err == nil {
			err = listslice.Pad(dst, lengths, ids[:kept], 32, 0)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/value")
}
