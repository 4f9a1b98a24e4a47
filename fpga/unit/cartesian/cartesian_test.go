package cartesian_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/cartesian"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
)

func TestCartesian(t *testing.T) {
	raw := sigridhash.Raw
	a := cartesian.Input{Lengths: []int32{2, 0, 1, 1}, IDs: []int64{1, 2, 3, 4}}
	b := cartesian.Input{Lengths: []int32{2, 1, 0, 1}, IDs: []int64{5, 6, 7, 8}}
	all := []int64{raw(5, 1), raw(6, 1), raw(5, 2), raw(6, 2), raw(8, 4)}
	for _, c := range []struct {
		name    string
		most    int64
		lengths []int32
		ids     []int64
	}{
		{"all", cartesian.MaxLength, []int32{4, 0, 0, 1}, all},
		{"as many as there are", 4, []int32{4, 0, 0, 1}, all},
		{"one fewer", 3, []int32{3, 0, 0, 1}, []int64{all[0], all[1], all[2], all[4]}},
		{"the first id's", 2, []int32{2, 0, 0, 1}, []int64{all[0], all[1], all[4]}},
		{"one", 1, []int32{1, 0, 0, 1}, []int64{all[0], all[4]}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lengths, ids, err := cartesian.Lists([]int32{9}, []int64{9}, a, b, cartesian.Params{MaxLength: c.most})
			require.NoError(t, err)
			require.Equal(t, append([]int32{9}, c.lengths...), lengths)
			require.Equal(t, append([]int64{9}, c.ids...), ids)
		})
	}
	_, _, err := cartesian.Lists(nil, nil, a, b, cartesian.Params{MaxLength: 4, Fail: true})
	require.NoError(t, err)
	lengths, ids, err := cartesian.Lists(nil, nil, a, b, cartesian.Params{MaxLength: 3, Fail: true})
	require.ErrorIs(t, err, cartesian.ErrTooLong)
	require.ErrorContains(t, err, "row 0 makes 2 x 2 ids, want at most 3")
	require.Empty(t, lengths)
	require.Empty(t, ids)
}

func TestLongLists(t *testing.T) {
	const n = 10_000
	in := cartesian.Input{Lengths: []int32{n}, IDs: make([]int64, n)}
	_, _, err := cartesian.Lists(nil, nil, in, in, cartesian.Params{MaxLength: cartesian.MaxLength, Fail: true})
	require.ErrorIs(t, err, cartesian.ErrTooLong)
	lengths, ids, err := cartesian.Lists(nil, nil, in, in, cartesian.Params{MaxLength: cartesian.MaxLength})
	require.NoError(t, err)
	require.Equal(t, []int32{cartesian.MaxLength}, lengths)
	require.Len(t, ids, cartesian.MaxLength)
}

func TestArgumentsThatDoNotFit(t *testing.T) {
	good := cartesian.Input{Lengths: []int32{1, 1}, IDs: []int64{1, 2}}
	p := cartesian.Params{MaxLength: 1}
	for name, bad := range map[string]cartesian.Input{
		"too few":  {Lengths: []int32{1, 0}, IDs: []int64{1, 2}},
		"too many": {Lengths: []int32{1, 2}, IDs: []int64{1, 2}},
		"negative": {Lengths: []int32{3, -1}, IDs: []int64{1, 2}},
		"one row":  {Lengths: []int32{2}, IDs: []int64{1, 2}},
		"overflow": {Lengths: []int32{math.MaxInt32, math.MaxInt32}, IDs: []int64{1, 2}},
	} {
		_, _, err := cartesian.Lists(nil, nil, good, bad, p)
		require.ErrorIs(t, err, cartesian.ErrLengths, name)
		_, _, err = cartesian.Lists(nil, nil, bad, good, p)
		require.ErrorIs(t, err, cartesian.ErrLengths, name)
	}
	for _, most := range []int64{math.MinInt64, 0, cartesian.MaxLength + 1} {
		_, _, err := cartesian.Lists(nil, nil, good, good, cartesian.Params{MaxLength: most})
		require.ErrorIs(t, err, cartesian.ErrMaxLength)
	}
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := cartesian.Params{MaxLength: rapid.Int64Range(1, 40).Draw(t, "most"), Fail: rapid.Bool().Draw(t, "fail")}
		var a, b cartesian.Input
		var wantLengths []int32
		var want []int64
		fails := false
		for range rapid.IntRange(0, 20).Draw(t, "rows") {
			x := rapid.SliceOfN(rapid.Int64(), 0, 8).Draw(t, "a")
			y := rapid.SliceOfN(rapid.Int64(), 0, 8).Draw(t, "b")
			a.Lengths, a.IDs = append(a.Lengths, int32(len(x))), append(a.IDs, x...)
			b.Lengths, b.IDs = append(b.Lengths, int32(len(y))), append(b.IDs, y...)
			ids, ok := cartesian.Reference(x, y, p)
			fails = fails || !ok
			wantLengths, want = append(wantLengths, int32(len(ids))), append(want, ids...)
		}
		lengths, ids, err := cartesian.Lists(nil, nil, a, b, p)
		if fails {
			require.ErrorIs(t, err, cartesian.ErrTooLong)
			return
		}
		require.NoError(t, err)
		require.Equal(t, wantLengths, lengths)
		require.Equal(t, want, ids)
	})
}

// TestListsOfAnyLength takes second lists up to and beyond the length whose hashes are computed once.
func TestListsOfAnyLength(t *testing.T) {
	for _, n := range []int{1, 2, 255, 256, 257, 300} {
		for _, m := range []int{0, 1, 2, 3} {
			for _, most := range []int64{1, 255, 256, 300, 511, 600, cartesian.MaxLength} {
				a, b := make([]int64, m), make([]int64, n)
				for i := range a {
					a[i] = int64(i) - 1
				}
				for i := range b {
					b[i] = int64(i)<<40 - 7
				}
				want, _ := cartesian.Reference(a, b, cartesian.Params{MaxLength: most})
				lengths, ids, err := cartesian.Lists(nil, []int64{5}, cartesian.Input{Lengths: []int32{int32(m)}, IDs: a},
					cartesian.Input{Lengths: []int32{int32(n)}, IDs: b}, cartesian.Params{MaxLength: most})
				require.NoError(t, err)
				require.Equal(t, []int32{int32(len(want))}, lengths)
				require.Equal(t, append([]int64{5}, want...), ids)
			}
		}
	}
}

func TestScalars(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOf(rapid.Int64()).Draw(t, "a")
		b := make([]int64, len(a))
		var want []int64
		for i := range a {
			b[i] = rapid.Int64().Draw(t, "b")
			ids, ok := cartesian.Reference(a[i:i+1], b[i:i+1], cartesian.Params{MaxLength: 1, Fail: true})
			require.True(t, ok)
			want = append(want, ids...)
		}
		cartesian.Scalars(a, a, b)
		require.Equal(t, want, append([]int64(nil), a...))
	})
}

func FuzzLists(f *testing.F) {
	f.Add([]byte{2, 0, 1}, []byte{1, 1, 1}, 3, 3, int64(2), false)
	f.Fuzz(func(t *testing.T, countsA, countsB []byte, idsA, idsB int, most int64, fail bool) {
		input := func(counts []byte, ids int) cartesian.Input {
			in := cartesian.Input{IDs: make([]int64, ids&0xffff)}
			for _, c := range counts {
				in.Lengths = append(in.Lengths, int32(int8(c)))
			}
			return in
		}
		a, b := input(countsA, idsA), input(countsB, idsB)
		lengths, ids, err := cartesian.Lists(nil, nil, a, b, cartesian.Params{MaxLength: most, Fail: fail})
		if err != nil {
			return
		}
		sum := 0
		for _, n := range lengths {
			require.LessOrEqual(t, int64(n), most)
			sum += int(n)
		}
		require.Len(t, ids, sum)
		require.Len(t, lengths, len(a.Lengths))
	})
}

func BenchmarkLists(b *testing.B) {
	const rows, mean = 512, 10
	in := cartesian.Input{IDs: make([]int64, rows*mean)}
	for i := range in.IDs {
		in.IDs[i] = int64(i)
	}
	for range rows {
		in.Lengths = append(in.Lengths, mean)
	}
	var lengths []int32
	var ids []int64
	for b.Loop() {
		var err error
		lengths, ids, err = cartesian.Lists(lengths[:0], ids[:0], in, in, cartesian.Params{MaxLength: 100})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/id")
}
