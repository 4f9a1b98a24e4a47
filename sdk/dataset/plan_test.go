package dataset

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPlanInDatasetOrder(t *testing.T) {
	m := manifest(t, 25, 0, 8, 10)
	p, err := NewPlan(m, Options{Batch: 4, SplitBatches: 3, Shuffle: ShuffleNone})
	require.NoError(t, err)
	want := []Fragment{
		{0, 0, 0, 0, 0, 4, 0}, {1, 1, 0, 0, 4, 4, 0}, {2, 2, 0, 0, 8, 4, 0},
		{3, 3, 0, 0, 12, 4, 1}, {4, 4, 0, 0, 16, 4, 1}, {5, 5, 0, 0, 20, 4, 1},
		{6, 6, 0, 0, 24, 1, 2},
		{7, 7, 0, 2, 0, 4, 3}, {8, 8, 0, 2, 4, 4, 3},
		{9, 9, 0, 3, 0, 4, 4}, {10, 10, 0, 3, 4, 4, 4}, {11, 11, 0, 3, 8, 2, 4},
	}
	assert.Equal(t, want, fragments(t, p))
	assert.EqualValues(t, 43, p.Rows())
	splits := slices.Collect(p.All())
	assert.Equal(t, []Split{
		{0, 0, 0, 0, 12, 0, 3, 0, 0}, {1, 1, 0, 12, 12, 3, 3, 0, 3}, {2, 2, 0, 24, 1, 6, 1, 0, 6},
		{3, 3, 2, 0, 8, 7, 2, 0, 7}, {4, 4, 3, 0, 10, 9, 3, 0, 9},
	}, splits)

	p, err = NewPlan(m, Options{Batch: 4, SplitBatches: 3, Shuffle: ShuffleNone, Tail: DropTail})
	require.NoError(t, err)
	want = []Fragment{
		{0, 0, 0, 0, 0, 4, 0}, {1, 1, 0, 0, 4, 4, 0}, {2, 2, 0, 0, 8, 4, 0},
		{3, 3, 0, 0, 12, 4, 1}, {4, 4, 0, 0, 16, 4, 1}, {5, 5, 0, 0, 20, 4, 1},
		{6, 6, 0, 2, 0, 4, 2}, {7, 7, 0, 2, 4, 4, 2},
		{8, 8, 0, 3, 0, 4, 3}, {9, 9, 0, 3, 4, 4, 3},
	}
	assert.Equal(t, want, fragments(t, p))
	assert.EqualValues(t, 40, p.Rows())
}

// TestSplitCounter counts mini-batches in another order than the plan's.
func TestSplitCounter(t *testing.T) {
	p, err := NewPlan(manifest(t, 25, 0, 8, 10), Options{Batch: 4, SplitBatches: 3, Shuffle: ShuffleNone})
	require.NoError(t, err)
	c := NewSplitCounter(p)
	var done []int
	for _, number := range []uint64{11, 0, 6, 2, 9, 1, 10, 3, 8, 7, 5, 4} {
		require.NoError(t, c.Add(number))
		done = append(done, c.Done())
	}
	assert.Equal(t, []int{0, 0, 1, 1, 1, 2, 3, 3, 3, 4, 4, 5}, done)
	assert.Equal(t, p.Splits(), c.Done())
	require.ErrorIs(t, c.Add(12), ErrNumber)
}

func TestPlanDefaults(t *testing.T) {
	p, err := NewPlan(manifest(t, 300_000), Options{})
	require.NoError(t, err)
	assert.Equal(t, Options{Batch: 8192, SplitBatches: 16, Window: 4}, p.Options())
	assert.EqualValues(t, 37, p.MiniBatches())
	assert.Equal(t, 3, p.Splits())
	assert.Equal(t, "300000 rows of 1 partitions in 37 mini-batches of 8192 and 3 splits of 16, shuffle splits, seed "+
		"0, epoch 0", p.String())
}

func TestPlanOfNothing(t *testing.T) {
	for _, m := range []*Manifest{manifest(t), manifest(t, 0, 0)} {
		p, err := NewPlan(m, Options{})
		require.NoError(t, err)
		assert.Zero(t, p.MiniBatches())
		assert.Zero(t, p.Splits())
		_, err = p.MiniBatch(0)
		require.ErrorIs(t, err, ErrNumber)
	}
	p, err := NewPlan(manifest(t, 3), Options{Batch: 4, Tail: DropTail})
	require.NoError(t, err)
	assert.Zero(t, p.MiniBatches(), "the only mini-batch is a dropped tail")
	assert.EqualValues(t, 3, p.LeftOut())
	require.ErrorIs(t, Options{Window: 2}.CheckWindow(), ErrOptions)
	require.NoError(t, Options{Window: 2, Shuffle: ShuffleRows}.CheckWindow())
}

func TestPlanRefuses(t *testing.T) {
	m := manifest(t, 10)
	for name, o := range map[string]Options{
		"a negative batch":      {Batch: -1},
		"a batch too large":     {Batch: MaxBatch + 1},
		"negative splits":       {SplitBatches: -1},
		"splits too large":      {SplitBatches: MaxSplitBatches + 1},
		"an unknown tail":       {Tail: 2},
		"an unknown shuffle":    {Shuffle: 3},
		"an unknown boundary":   {Boundary: 2},
		"a negative window":     {Window: -1},
		"a window over a split": {SplitBatches: 4, Window: 5},
		"a window too large":    {Batch: MaxBatch, SplitBatches: 128, Window: 128, Shuffle: ShuffleRows},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewPlan(m, o)
			require.ErrorIs(t, err, ErrOptions)
			_, err = JobDigest(Digest{}, nil, o)
			require.ErrorIs(t, err, ErrOptions)
		})
	}
	for _, o := range []Options{{Batch: MaxBatch}, {SplitBatches: MaxSplitBatches}, {Batch: MaxBatch, SplitBatches: 127,
		Window: 127, Shuffle: ShuffleRows}} {
		_, err := NewPlan(m, o)
		require.NoError(t, err)
	}
	_, err := NewPlan(nil, Options{})
	require.ErrorIs(t, err, ErrManifest)
	_, err = NewPlan(&Manifest{Partitions: []Partition{{Name: "a", Rows: 5}}}, Options{})
	require.ErrorIs(t, err, ErrManifest, "a manifest put together by hand is checked")

	huge, err := NewManifest([]Partition{{Name: "a", Rows: math.MaxInt64, RowGroups: []int64{math.MaxInt64}}})
	require.NoError(t, err)
	for _, perSplit := range []int{1, 2, MaxSplitBatches} {
		_, err = NewPlan(huge, Options{Batch: 1, SplitBatches: perSplit})
		require.ErrorIs(t, err, ErrOptions, "too many splits of %d", perSplit)
	}
	p, err := NewPlan(huge, Options{Batch: MaxBatch, SplitBatches: MaxSplitBatches, Shuffle: ShuffleNone})
	require.NoError(t, err)
	last, err := p.Fragment(p.Fragments() - 1)
	require.NoError(t, err)
	assert.EqualValues(t, math.MaxInt64, last.First+int64(last.Rows))
}

// The vectors below were computed by the Python program in testdata/shuffle.py, which follows the package comment.
func TestShuffleGolden(t *testing.T) {
	s := newGenerator()
	assert.Equal(t, []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f}, []uint64{s.next(), s.next(),
		s.next()},
		"splitmix64 from state 0, as its authors publish it")
	for _, tc := range goldenShuffles {
		t.Run(fmt.Sprint(tc.key, tc.n), func(t *testing.T) {
			s := newGenerator(tc.key...)
			assert.Equal(t, tc.state, uint64(s))
			p := make([]uint32, tc.n)
			permute(&s, p)
			assert.Equal(t, tc.head, p[:min(len(p), 10)])
		})
	}
}

func TestPlanUsesTheDocumentedKeys(t *testing.T) {
	m := manifest(t, 4000, 4000)
	o := Options{Batch: 10, SplitBatches: 8, Shuffle: ShuffleRows, Seed: 7, Epoch: 3, Window: 3}
	p, err := NewPlan(m, o)
	require.NoError(t, err)
	require.Equal(t, 100, p.Splits())
	want := make([]uint32, 100)
	s := newGenerator(7, 3, 1)
	permute(&s, want)
	for place := range 100 {
		split, err := p.Split(place)
		require.NoError(t, err)
		require.EqualValues(t, want[place], split.ID)
	}

	first, err := p.Split(5)
	require.NoError(t, err)
	w, err := p.Window(first.FirstFragment + 7)
	require.NoError(t, err)
	assert.Equal(t, Window{Split: 5, Index: 2, FirstFragment: first.FirstFragment + 6, Fragments: 2, Rows: 20}, w)
	perm, err := p.RowPermutation(w)
	require.NoError(t, err)
	rows := make([]uint32, 20)
	s = newGenerator(7, 3, 2, uint64(first.ID), 2)
	permute(&s, rows)
	assert.Equal(t, rows, perm)

	w.Rows++
	_, err = p.RowPermutation(w)
	require.ErrorIs(t, err, ErrNumber)
}

func TestWithoutRowShuffleAWindowIsAMiniBatch(t *testing.T) {
	p, err := NewPlan(manifest(t, 35), Options{Batch: 10})
	require.NoError(t, err)
	w, err := p.Window(3)
	require.NoError(t, err)
	assert.Equal(t, Window{Split: 0, Index: 3, FirstFragment: 3, Fragments: 1, Rows: 5}, w)
	perm, err := p.RowPermutation(w)
	require.NoError(t, err)
	assert.Nil(t, perm)
}

func TestShuffleDependsOnSeedAndEpoch(t *testing.T) {
	m := manifest(t, 10_000)
	seen := map[string]string{}
	for seed := range uint64(4) {
		for epoch := range uint64(4) {
			p, err := NewPlan(m, Options{Batch: 10, SplitBatches: 2, Seed: seed, Epoch: epoch})
			require.NoError(t, err)
			key := fmt.Sprint(p.splitIDs)
			assert.Empty(t, seen[key], "two plans are the same")
			seen[key] = p.String()
		}
	}
}

// A permutation that is uniform puts every split at every place equally often.
func TestShuffleIsUniform(t *testing.T) {
	const n, rounds = 5, 24_000
	counts := map[[n]uint32]int{}
	for seed := range uint64(rounds) {
		s := newGenerator(seed, 0, uint64(DomainSplits))
		var p [n]uint32
		permute(&s, p[:])
		counts[p]++
	}
	require.Len(t, counts, 120)
	chi := 0.0
	for _, c := range counts {
		d := float64(c) - rounds/120
		chi += d * d / (rounds / 120)
	}
	assert.Less(t, chi, 175.0, "119 degrees of freedom: the 99.93 % point") // the seeds are fixed, so this cannot flake
}

// Every row of every partition is in exactly one mini-batch, dropped tails in none; numbers name mini-batches uniquely.
func TestPlanCoversEveryRowOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Int64Range(0, 400), 0, 12).Draw(t, "rows")
		var parts []Partition
		for i, n := range rows {
			parts = append(parts, part(fmt.Sprint(i), n))
		}
		m, err := NewManifest(parts)
		require.NoError(t, err)
		o := Options{
			Batch:        rapid.IntRange(1, 50).Draw(t, "batch"),
			Tail:         Tail(rapid.IntRange(0, 1).Draw(t, "tail")),
			Shuffle:      Shuffle(rapid.IntRange(0, 2).Draw(t, "shuffle")),
			Seed:         rapid.Uint64().Draw(t, "seed"),
			Epoch:        rapid.Uint64().Draw(t, "epoch"),
			SplitBatches: rapid.IntRange(1, 6).Draw(t, "split batches"),
		}
		p, err := NewPlan(m, o)
		require.NoError(t, err)

		seen := make([][]bool, len(m.Partitions))
		for i := range seen {
			seen[i] = make([]bool, m.Partitions[i].Rows)
		}
		var total int64
		ids := map[int]bool{}
		number := uint64(0)
		for s := range p.All() {
			require.False(t, ids[s.ID])
			ids[s.ID] = true
			require.Equal(t, number, s.FirstFragment)
			require.LessOrEqual(t, s.Fragments, o.SplitBatches)
			var inSplit int64
			for i := range s.Fragments {
				mb, err := p.Fragment(number)
				require.NoError(t, err)
				require.Equal(t, mb, s.Fragment(o.Batch, i))
				require.Equal(t, number, mb.Number)
				require.Equal(t, s.First+inSplit, mb.First)
				require.Zero(t, mb.First%int64(o.Batch), "cut from row 0")
				if mb.Rows != o.Batch {
					require.Equal(t, KeepTail, o.Tail)
					require.Equal(t, m.Partitions[mb.Partition].Rows, mb.First+int64(mb.Rows), "only the last is short")
				}
				require.Positive(t, mb.Rows)
				for r := mb.First; r < mb.First+int64(mb.Rows); r++ {
					require.False(t, seen[mb.Partition][r], "row %d of partition %d twice", r, mb.Partition)
					seen[mb.Partition][r] = true
				}
				inSplit += int64(mb.Rows)
				number++
			}
			require.Equal(t, s.Rows, inSplit)
			total += inSplit
		}
		require.Equal(t, p.MiniBatches(), number)
		require.Equal(t, p.Rows(), total)
		for i := range seen {
			n := m.Partitions[i].Rows
			if o.Tail == DropTail {
				n -= n % int64(o.Batch)
			}
			for r, ok := range seen[i] {
				require.Equal(t, int64(r) < n, ok, "partition %d row %d", i, r)
			}
		}
		windows(t, p)
	})
}

// windows checks that windows cut the plan into runs and that their permutations are permutations.
func windows(t *rapid.T, p *Plan) {
	for number := uint64(0); number < p.Fragments(); {
		w, err := p.Window(number)
		require.NoError(t, err)
		require.Equal(t, number, w.FirstFragment)
		rows := 0
		for i := range w.Fragments {
			f, err := p.Fragment(number + uint64(i))
			require.NoError(t, err)
			require.Equal(t, w.Split, f.Split)
			rows += f.Rows
			again, err := p.Window(f.Number)
			require.NoError(t, err)
			require.Equal(t, w, again)
		}
		require.Equal(t, rows, w.Rows)
		perm, err := p.RowPermutation(w)
		require.NoError(t, err)
		if p.Options().Shuffle == ShuffleRows {
			require.Len(t, perm, rows)
			slices.Sort(perm)
			for i, v := range perm {
				require.EqualValues(t, i, v)
			}
		}
		number += uint64(w.Fragments)
	}
}

// The rows of a mini-batch do not depend on how the file was cut into row groups.
func TestPlanIgnoresRowGroups(t *testing.T) {
	a, err := NewManifest([]Partition{{Name: "a", Rows: 100, RowGroups: []int64{100}}})
	require.NoError(t, err)
	b, err := NewManifest([]Partition{{Name: "a", Rows: 100, RowGroups: []int64{1, 0, 98, 1}}})
	require.NoError(t, err)
	pa, err := NewPlan(a, Options{Batch: 7})
	require.NoError(t, err)
	pb, err := NewPlan(b, Options{Batch: 7})
	require.NoError(t, err)
	assert.Equal(t, fragments(t, pa), fragments(t, pb))
}

func TestPlanOfAMillionSplits(t *testing.T) {
	const rows = 1_000_000 * 16 * 8192
	m, err := NewManifest([]Partition{{Name: "a", Rows: rows, RowGroups: []int64{rows}}})
	require.NoError(t, err)
	p, err := NewPlan(m, Options{Seed: 1})
	require.NoError(t, err)
	assert.Equal(t, 1_000_000, p.Splits())
	assert.EqualValues(t, 16_000_000, p.MiniBatches())
	for _, number := range []uint64{0, 1, 15, 16, 8_000_000, 15_999_999} {
		f, err := p.Fragment(number)
		require.NoError(t, err)
		assert.EqualValues(t, number/16, f.Split)
		assert.EqualValues(t, number%16, f.First/8192%16)
	}
}

func TestNamesOfChoices(t *testing.T) {
	for _, s := range []Shuffle{ShuffleSplits, ShuffleNone, ShuffleRows} {
		b, err := s.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, s.String(), string(b))
		var back Shuffle
		require.NoError(t, back.UnmarshalText(b))
		assert.Equal(t, s, back)
	}
	for _, v := range []Tail{KeepTail, DropTail} {
		b, err := v.MarshalText()
		require.NoError(t, err)
		var back Tail
		require.NoError(t, back.UnmarshalText(b))
		assert.Equal(t, v, back)
	}
	for _, v := range []Boundary{BoundaryPartition, BoundaryNone} {
		b, err := v.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, v.String(), string(b))
		var back Boundary
		require.NoError(t, back.UnmarshalText(b))
		assert.Equal(t, v, back)
	}
	var boundary Boundary
	require.ErrorIs(t, boundary.UnmarshalText([]byte("file")), ErrOptions)
	var s Shuffle
	require.ErrorIs(t, s.UnmarshalText([]byte("all")), ErrOptions)
	_, err := Shuffle(9).MarshalText()
	require.ErrorIs(t, err, ErrOptions)
	assert.Equal(t, "unknown(9)", Tail(9).String())
}

// fragments returns all fragments of a plan.
func fragments(t require.TestingT, p *Plan) []Fragment {
	var out []Fragment
	for i := range p.Fragments() {
		f, err := p.Fragment(i)
		require.NoError(t, err)
		out = append(out, f)
	}
	return out
}

func BenchmarkPlanMillionSplits(b *testing.B) {
	const rows = 1_000_000 * 16 * 8192
	m, err := NewManifest([]Partition{{Name: "a", Rows: rows, RowGroups: []int64{rows}}})
	require.NoError(b, err)
	for b.Loop() {
		_, err := NewPlan(m, Options{})
		require.NoError(b, err)
	}
}

func ExamplePlan() {
	m, _ := NewManifest([]Partition{
		{Name: "day_0", Bytes: 900, Rows: 9, RowGroups: []int64{9}},
		{Name: "day_1", Bytes: 500, Rows: 5, RowGroups: []int64{5}},
	})
	plan, _ := NewPlan(m, Options{Batch: 4, Shuffle: ShuffleNone})
	for i := range plan.MiniBatches() {
		f, _ := plan.FragmentAt(i, 0)
		fmt.Printf("%d: %s rows %d to %d\n", i, m.Partitions[f.Partition].Name, f.First, f.First+int64(f.Rows)-1)
	}
	// Output:
	// 0: day_0 rows 0 to 3
	// 1: day_0 rows 4 to 7
	// 2: day_0 rows 8 to 8
	// 3: day_1 rows 0 to 3
	// 4: day_1 rows 4 to 4
}
