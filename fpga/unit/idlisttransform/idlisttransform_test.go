package idlisttransform_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/idlisttransform"
)

func TestArgumentsThatDoNotFit(t *testing.T) {
	good := idlisttransform.Input{Lengths: []int32{1, 1}, IDs: []int64{1, 2}}
	for name, bad := range map[string]idlisttransform.Input{
		"too few":  {Lengths: []int32{1, 0}, IDs: []int64{1, 2}},
		"too many": {Lengths: []int32{1, 2}, IDs: []int64{1, 2}},
		"negative": {Lengths: []int32{3, -1}, IDs: []int64{1, 2}},
		"one row":  {Lengths: []int32{2}, IDs: []int64{1, 2}},
		"overflow": {Lengths: []int32{math.MaxInt32, math.MaxInt32}, IDs: []int64{1, 2}},
	} {
		lengths, ids, err := new(idlisttransform.Intersection).Lists(nil, nil, good, bad)
		require.ErrorIs(t, err, idlisttransform.ErrLengths, name)
		require.Empty(t, lengths)
		require.Empty(t, ids)
		_, _, err = new(idlisttransform.Intersection).Lists(nil, nil, bad, good)
		require.ErrorIs(t, err, idlisttransform.ErrLengths, name)
	}
}

func TestKernelEqualsReference(t *testing.T) {
	var x idlisttransform.Intersection
	rapid.Check(t, func(t *rapid.T) {
		var a, b idlisttransform.Input
		wantLengths, want := []int32{}, []int64{}
		id := rapid.OneOf(rapid.Int64Range(0, 40), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, -1}))
		for range rapid.IntRange(0, 8).Draw(t, "rows") {
			p := rapid.SliceOfN(id, 0, 60).Draw(t, "a")
			q := rapid.SliceOfN(id, 0, 60).Draw(t, "b")
			a.Lengths, a.IDs = append(a.Lengths, int32(len(p))), append(a.IDs, p...)
			b.Lengths, b.IDs = append(b.Lengths, int32(len(q))), append(b.IDs, q...)
			ids := idlisttransform.Reference(p, q)
			wantLengths, want = append(wantLengths, int32(len(ids))), append(want, ids...)
		}
		lengths, ids, err := x.Lists([]int32{}, []int64{}, a, b)
		require.NoError(t, err)
		require.Equal(t, wantLengths, lengths)
		require.Equal(t, want, ids)
	})
}

// TestBothWays takes lists with as many comparisons as are made one by one, and with one more row of them.
func TestBothWays(t *testing.T) {
	var a []int64
	for i := range int64(33) {
		a = append(a, i%20)
	}
	for _, n := range []int{15, 16, 17, 40} {
		b := make([]int64, n)
		for i := range b {
			b[i] = int64(i) * 2
		}
		for _, list := range [][]int64{a[:32], a} {
			in := idlisttransform.Input{Lengths: []int32{int32(len(list))}, IDs: list}
			_, ids, err := new(idlisttransform.Intersection).Lists(nil, []int64{}, in,
				idlisttransform.Input{Lengths: []int32{int32(n)}, IDs: b})
			require.NoError(t, err)
			require.Equal(t, idlisttransform.Reference(list, b), ids)
		}
	}
}

func FuzzLists(f *testing.F) {
	f.Add([]byte{2, 0, 1}, []byte{1, 1, 1}, []byte{1, 2, 3}, []byte{3, 2, 1})
	f.Fuzz(func(t *testing.T, countsA, countsB, idsA, idsB []byte) {
		input := func(counts, ids []byte) (in idlisttransform.Input) {
			for _, c := range counts {
				in.Lengths = append(in.Lengths, int32(int8(c)))
			}
			for _, id := range ids {
				in.IDs = append(in.IDs, int64(int8(id)))
			}
			return in
		}
		a, b := input(countsA, idsA), input(countsB, idsB)
		lengths, ids, err := new(idlisttransform.Intersection).Lists(nil, nil, a, b)
		if err == nil {
			require.Len(t, lengths, len(a.Lengths))
			require.LessOrEqual(t, len(ids), len(a.IDs))
		}
	})
}

func BenchmarkLists(b *testing.B) {
	const rows, mean = 512, 20
	in := idlisttransform.Input{IDs: make([]int64, rows*mean)}
	for i := range in.IDs {
		in.IDs[i] = int64(i)
	}
	for range rows {
		in.Lengths = append(in.Lengths, mean)
	}
	var x idlisttransform.Intersection
	var lengths []int32
	var ids []int64
	for b.Loop() {
		var err error
		if lengths, ids, err = x.Lists(lengths[:0], ids[:0], in, in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(in.IDs)), "ns/id")
}
