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

// drawSequence returns a manifest and options of a plan with BoundaryNone.
func drawSequence(t *rapid.T) (*Manifest, Options) {
	group := rapid.OneOf(rapid.Int64Range(0, 12), rapid.Int64Range(0, 150))
	groups := rapid.SliceOfN(rapid.SliceOfN(group, 0, 12), 0, 8).Draw(t, "groups")
	return grouped(t, groups...), Options{
		Batch:        rapid.IntRange(1, 20).Draw(t, "batch"),
		Boundary:     BoundaryNone,
		Tail:         Tail(rapid.IntRange(0, 1).Draw(t, "tail")),
		Shuffle:      Shuffle(rapid.IntRange(0, 2).Draw(t, "shuffle")),
		Seed:         rapid.Uint64().Draw(t, "seed"),
		Epoch:        rapid.Uint64().Draw(t, "epoch"),
		SplitBatches: rapid.IntRange(1, 6).Draw(t, "split batches"),
	}
}

// sequenceOf returns the fragments of a plan's splits, found row by row.
func sequenceOf(p *Plan) []Fragment {
	var list []Fragment
	row, batch := 0, p.Options().Batch
	for s := range p.All() {
		for i := range s.Rows {
			if i == 0 || row%batch == 0 {
				list = append(list, Fragment{Number: uint64(len(list)), MiniBatch: uint64(row / batch),
					Offset: row % batch, Partition: s.Partition, First: s.First + i, Split: s.Position})
			}
			list[len(list)-1].Rows++
			row++
		}
	}
	return list
}

// TestSequenceIsCutIntoFragments compares everything that a plan says of numbers with a list made row by row.
func TestSequenceIsCutIntoFragments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, o := drawSequence(t)
		p, err := NewPlan(m, o)
		require.NoError(t, err)
		list := sequenceOf(p)
		require.Equal(t, list, fragments(t, p))
		var miniBatches []MiniBatch
		for _, f := range list {
			if f.Offset == 0 {
				miniBatches = append(miniBatches, MiniBatch{Number: f.MiniBatch, FirstFragment: f.Number})
			}
			mb := &miniBatches[f.MiniBatch]
			require.Equal(t, mb.Rows, f.Offset)
			mb.Fragments++
			mb.Rows += f.Rows
		}
		require.EqualValues(t, len(miniBatches), p.MiniBatches())
		for i, want := range miniBatches {
			require.True(t, want.Rows == o.Batch || i == len(miniBatches)-1 && o.Tail == KeepTail, "only the last is short")
			have, err := p.MiniBatch(uint64(i))
			require.NoError(t, err)
			require.Equal(t, want, have)
		}
		checkSplits(t, p, list)
		checkIndices(t, p, list)
		checkRanges(t, p, list)
		windows(t, p)
		for _, err := range []error{ignore(p.MiniBatch(p.MiniBatches())), ignore(p.Fragment(p.Fragments())),
			ignore(p.Split(p.Splits())), ignore(p.Split(-1)), ignore(p.Window(p.Fragments())),
			ignore(p.FragmentAt(p.MiniBatches(), 0))} {
			require.ErrorIs(t, err, ErrNumber)
		}
	})
}

// ignore returns the error of a call.
func ignore[T any](_ T, err error) error { return err }

// checkSplits checks that splits and their fragments say the same.
func checkSplits(t *rapid.T, p *Plan, list []Fragment) {
	number := 0
	for s := range p.All() {
		require.EqualValues(t, number, s.FirstFragment)
		require.Positive(t, s.Fragments)
		require.LessOrEqual(t, s.Fragments, MaxSplitFragments)
		require.Equal(t, list[number].MiniBatch, s.FirstBatch)
		require.Equal(t, list[number].Offset, s.Before)
		rows := int64(0)
		for i := range s.Fragments {
			require.Equal(t, rows, s.RowsBefore(p.Options().Batch, i))
			require.Equal(t, list[number], s.Fragment(p.Options().Batch, i))
			rows += int64(list[number].Rows)
			number++
		}
		require.Equal(t, s.Rows, rows)
		require.Equal(t, rows, s.RowsBefore(p.Options().Batch, s.Fragments))
		require.EqualValues(t, number, s.End())
	}
	require.Len(t, list, number)
}

// checkIndices checks that the fragments of every mini-batch are found by their index, and no others.
func checkIndices(t *rapid.T, p *Plan, list []Fragment) {
	index := 0
	for i, f := range list {
		if index++; i == 0 || f.MiniBatch != list[i-1].MiniBatch {
			index = 0
		}
		have, err := p.FragmentAt(f.MiniBatch, index)
		require.NoError(t, err)
		require.Equal(t, f, have)
		place, of := p.Place(f)
		if mb, _ := p.MiniBatch(f.MiniBatch); mb.Fragments == 1 {
			require.Equal(t, [2]int{}, [2]int{place, of}, "the fragment is the whole mini-batch")
		} else {
			require.Equal(t, [2]int{index, mb.Fragments}, [2]int{place, of})
		}
		if i+1 == len(list) || f.MiniBatch != list[i+1].MiniBatch {
			_, err = p.FragmentAt(f.MiniBatch, index+1)
			require.ErrorIs(t, err, ErrNumber)
		}
		_, err = p.FragmentAt(f.MiniBatch, -1)
		require.ErrorIs(t, err, ErrNumber)
	}
}

// checkRanges checks ranges of mini-batches against the ranges of their fragments.
func checkRanges(t *rapid.T, p *Plan, list []Fragment) {
	draw := func(most uint64) Range {
		from := rapid.Uint64Range(0, most).Draw(t, "from")
		return Range{From: from, To: rapid.Uint64Range(from, most).Draw(t, "to")}
	}
	within := func(r Range, number uint64) bool { return r.From <= number && number < r.To }
	miniBatches := draw(p.MiniBatches())
	have := p.FragmentsOf(miniBatches)
	for _, f := range list {
		require.Equal(t, within(miniBatches, f.MiniBatch), within(have, f.Number), "%v: %v", miniBatches, f)
	}
	require.Equal(t, miniBatches, p.MiniBatchesOf(have))
	some := draw(p.Fragments())
	whole := p.MiniBatchesOf(some)
	require.LessOrEqual(t, whole.From, whole.To)
	outside := map[uint64]bool{}
	for _, f := range list {
		outside[f.MiniBatch] = outside[f.MiniBatch] || !within(some, f.Number)
	}
	for number, out := range outside {
		require.Equal(t, !out, within(whole, number), "mini-batch %d, fragments %v", number, some)
	}
}

// TestSequenceHasEveryRowOnce also checks where splits end.
func TestSequenceHasEveryRowOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, o := drawSequence(t)
		p, err := NewPlan(m, o)
		require.NoError(t, err)
		ends := make([][]int64, len(m.Partitions)) // of the splits that have all their rows
		for s := range p.All() {
			ends[s.Partition] = append(ends[s.Partition], s.First, s.First+s.Rows)
		}
		left := int64(0)
		for i, part := range m.Partitions {
			slices.Sort(ends[i]) // Splits that follow each other have each end twice.
			if o.Tail == KeepTail && part.Rows > 0 {
				require.Zero(t, ends[i][0])
				require.Equal(t, part.Rows, ends[i][len(ends[i])-1])
			}
			rows := part.Rows
			for j := 0; j < len(ends[i]); j += 2 {
				require.Less(t, ends[i][j], ends[i][j+1], "splits have rows and share none")
				rows -= ends[i][j+1] - ends[i][j]
			}
			left += rows
		}
		require.Equal(t, left, p.LeftOut())
		require.Equal(t, m.Rows(), p.Rows()+p.LeftOut())
		if o.Tail == DropTail {
			require.Equal(t, m.Rows()%int64(o.Batch), left)
		} else {
			require.Zero(t, left)
		}
	})
}

// TestSplitsEndWhereRowGroupsDo checks what the package comment promises of the ends of splits.
func TestSplitsEndWhereRowGroupsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, o := drawSequence(t)
		o.Shuffle, o.Tail = ShuffleNone, KeepTail
		p, err := NewPlan(m, o)
		require.NoError(t, err)
		size := int64(o.SplitBatches) * int64(o.Batch)
		for s := range p.All() {
			var groupEnds []int64
			end, large := int64(0), false
			for _, n := range m.Partitions[s.Partition].RowGroups {
				if n > size+size/2 && s.First >= end && s.First < end+n {
					large = true
					require.Equal(t, s.First+s.Rows, end+n, "a large row group is a split of its own")
				}
				end += n
				groupEnds = append(groupEnds, end)
			}
			if large {
				continue
			}
			require.LessOrEqual(t, s.Rows, size+size/2)
			if slices.Contains(groupEnds, s.First+s.Rows) {
				continue
			}
			require.Equal(t, size, s.Rows)
			for _, end := range groupEnds {
				distance := end - (s.First + size)
				require.Greater(t, max(distance, -distance), size/2, "a row group ends nearer at %d", end)
			}
		}
	})
}

// TestLargeRowGroupIsDivided checks the most rows of a split from both sides.
func TestLargeRowGroupIsDivided(t *testing.T) {
	for _, c := range []struct {
		group int64
		o     Options
		rows  []int64
	}{
		{15, Options{Batch: 5, SplitBatches: 2}, []int64{15}}, // not large: one and a half splits
		{16, Options{Batch: 5, SplitBatches: 2}, []int64{16}},
		{4 << 20, Options{Batch: 8, SplitBatches: 2}, []int64{4 << 20}},
		{4<<20 + 1, Options{Batch: 8, SplitBatches: 2}, []int64{4 << 20, 1}},
		{8<<20 + 1, Options{Batch: 8 << 20, SplitBatches: 1}, []int64{8<<20 + 1}},
		{12<<20 + 1, Options{Batch: 8 << 20, SplitBatches: 1}, []int64{8 << 20, 4<<20 + 1}},
		{MaxSplitFragments - 1, Options{Batch: 1, SplitBatches: 2}, []int64{MaxSplitFragments - 1}},
		{MaxSplitFragments, Options{Batch: 1, SplitBatches: 2}, []int64{MaxSplitFragments - 1, 1}},
	} {
		c.o.Boundary, c.o.Shuffle = BoundaryNone, ShuffleNone
		p, err := NewPlan(grouped(t, []int64{c.group}), c.o)
		require.NoError(t, err)
		var rows []int64
		for s := range p.All() {
			rows = append(rows, s.Rows)
		}
		assert.Equal(t, c.rows, rows, "%d %+v", c.group, c.o)
	}
}

// TestNoSplitHasMoreFragmentsThanItsMost puts a split of the most rows behind one row, so that it begins inside a
// mini-batch.
func TestNoSplitHasMoreFragmentsThanItsMost(t *testing.T) {
	largest := int64(MaxSplitFragments-1) * 2
	p, err := NewPlan(grouped(t, []int64{1}, []int64{largest + 1}), Options{Batch: 2, SplitBatches: 1,
		Boundary: BoundaryNone, Shuffle: ShuffleNone})
	require.NoError(t, err)
	s, err := p.Split(1)
	require.NoError(t, err)
	assert.Equal(t, largest, s.Rows)
	assert.Equal(t, MaxSplitFragments, s.Fragments)
	widest := int64(MaxSplitBatches) * 3
	p, err = NewPlan(grouped(t, []int64{1}, []int64{widest}), Options{Batch: 2, SplitBatches: MaxSplitBatches,
		Boundary: BoundaryNone, Shuffle: ShuffleNone})
	require.NoError(t, err)
	s, err = p.Split(1)
	require.NoError(t, err)
	assert.Equal(t, widest, s.Rows)
	assert.Equal(t, MaxSplitBatches*3/2+1, s.Fragments)
}

// TestCutterStopsAtItsLimit checks the most splits of a plan, with a limit that a test can reach.
func TestCutterStopsAtItsLimit(t *testing.T) {
	c := newCutter(Options{Batch: 1, SplitBatches: 1}, 10)
	for _, groups := range [][]int64{nil, {1, 1, 1, 1, 1, 1}} {
		ends, err := c.cut([]int64{7, 8, 9, 10}, 6, groups)
		require.NoError(t, err)
		assert.Equal(t, []int64{7, 8, 9, 10, 1, 2, 3, 4, 5, 6}, ends)
		_, err = c.cut([]int64{6, 7, 8, 9, 10}, 6, groups)
		require.ErrorIs(t, err, ErrOptions)
	}
}

// TestSplitsAreCheckedWithoutAPlan checks plans that have as many splits as they may, and one more.
func TestSplitsAreCheckedWithoutAPlan(t *testing.T) {
	m := grouped(t, []int64{10, 10, 10}, []int64{7})
	for _, boundary := range []Boundary{BoundaryPartition, BoundaryNone} {
		for _, passing := range [][]int64{nil, {12, 7}} {
			o := Options{Batch: 5, SplitBatches: 1, Boundary: boundary}
			p, err := NewSelectedPlan(m, passing, o)
			require.NoError(t, err)
			require.NoError(t, CheckSplits(m, passing, o, p.Splits()))
			err = CheckSplits(m, passing, o, p.Splits()-1)
			require.ErrorIs(t, err, ErrOptions)
			require.ErrorContains(t, err, fmt.Sprintf("more than %d splits", p.Splits()-1))
		}
		for _, huge := range []*Manifest{grouped(t, []int64{1 << 62}), grouped(t, []int64{5, 5, 5, 1 << 61})} {
			o := Options{Batch: 1, Boundary: boundary}
			require.ErrorIs(t, CheckSplits(huge, nil, o, 16<<20), ErrOptions)
		}
	}
	require.ErrorIs(t, CheckSplits(nil, nil, Options{}, 1), ErrManifest)
	require.ErrorIs(t, CheckSplits(m, nil, Options{Batch: -1}, 1), ErrOptions)
}

// TestHostileManifestsArePlannedInBoundedMemory has no splits listed that do not fit a plan.
func TestHostileManifestsArePlannedInBoundedMemory(t *testing.T) {
	huge := grouped(t, []int64{1 << 62})
	for _, passing := range [][]int64{nil, {1 << 62}} {
		_, err := NewSelectedPlan(huge, passing, Options{Boundary: BoundaryNone, Batch: 1})
		require.ErrorIs(t, err, ErrOptions)
	}
	p, err := NewPlan(huge, Options{Boundary: BoundaryNone, Batch: MaxBatch, SplitBatches: MaxSplitBatches})
	require.NoError(t, err)
	assert.Equal(t, 1<<18, p.Splits())
	last, err := p.MiniBatch(1<<38 - 1)
	require.NoError(t, err)
	assert.Equal(t, MiniBatch{Number: 1<<38 - 1, Rows: MaxBatch, FirstFragment: 1<<38 - 1, Fragments: 1}, last)
	_, err = NewPlan(grouped(t, []int64{math.MaxInt64}), Options{Boundary: BoundaryNone, Batch: MaxBatch,
		SplitBatches: MaxSplitBatches})
	require.NoError(t, err)
	_, err = NewPlan(&Manifest{Partitions: []Partition{
		{Name: "a", Rows: math.MaxInt64, RowGroups: []int64{math.MaxInt64}}, {Name: "b", Rows: 1, RowGroups: []int64{1}},
	}}, Options{Boundary: BoundaryNone, Batch: MaxBatch, SplitBatches: MaxSplitBatches})
	require.ErrorIs(t, err, ErrManifest, "a manifest put together by hand with more than 2^63 rows")

	pairs := make([][]int64, 100_000)
	for i := range pairs {
		pairs[i] = []int64{2}
	}
	p, err = NewPlan(grouped(t, pairs...), Options{Boundary: BoundaryNone, Batch: 3})
	require.NoError(t, err)
	assert.Equal(t, 100_000, p.Splits())
	assert.EqualValues(t, 66_667, p.MiniBatches())
	first, err := p.MiniBatch(0)
	require.NoError(t, err)
	assert.Equal(t, MiniBatch{Rows: 3, Fragments: 2}, first)
	singles := slices.Repeat([]int64{1, 0}, 100_000)
	p, err = NewPlan(grouped(t, singles), Options{Boundary: BoundaryNone, Batch: 10, SplitBatches: 10})
	require.NoError(t, err)
	assert.Equal(t, 1000, p.Splits())
}

// TestOneMiniBatchOfManySplits has more fragments in a mini-batch than splits of other plans.
func TestOneMiniBatchOfManySplits(t *testing.T) {
	p, err := NewPlan(grouped(t, slices.Repeat([][]int64{{1}}, 5000)...), Options{Boundary: BoundaryNone})
	require.NoError(t, err)
	mb, err := p.MiniBatch(0)
	require.NoError(t, err)
	assert.Equal(t, MiniBatch{Rows: 5000, Fragments: 5000}, mb)
	f, err := p.FragmentAt(0, 4321)
	require.NoError(t, err)
	assert.EqualValues(t, 4321, f.Number)
	assert.Contains(t, p.String(), "in 1 mini-batches of 8192 across partitions")
}

// TestSelectedSequence has splits of equal rows, since a selection does not know row groups.
func TestSelectedSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, o := drawSequence(t)
		passing, all := []int64{}, int64(0)
		for _, part := range m.Partitions {
			passing = append(passing, rapid.Int64Range(0, part.Rows).Draw(t, "passing"))
			all += passing[len(passing)-1]
		}
		p, err := NewSelectedPlan(m, passing, o)
		require.NoError(t, err)
		size := int64(o.SplitBatches) * int64(o.Batch)
		for s := range p.All() {
			require.Zero(t, s.First%size)
			end := s.First + s.Rows
			require.True(t, s.Rows == size || end == passing[s.Partition] || s.Position == p.Splits()-1, "%v", s)
		}
		require.Equal(t, all, p.Rows()+p.LeftOut())
		require.Equal(t, sequenceOf(p), fragments(t, p))
	})
}

// TestSplitCounterCountsSplitsOfSharedMiniBatches adds mini-batches whose fragments are in several splits.
func TestSplitCounterCountsSplitsOfSharedMiniBatches(t *testing.T) {
	p, err := NewPlan(grouped(t, []int64{3}, []int64{4}, []int64{5}), Options{Batch: 4, SplitBatches: 1,
		Boundary: BoundaryNone, Shuffle: ShuffleNone})
	require.NoError(t, err)
	require.Equal(t, 3, p.Splits())
	c := NewSplitCounter(p)
	var done []int
	for _, number := range []uint64{1, 0, 2} {
		require.NoError(t, c.Add(number))
		done = append(done, c.Done())
	}
	assert.Equal(t, []int{0, 2, 3}, done)
	require.ErrorIs(t, c.Add(3), ErrNumber)
}

// TestTableOfDocsShuffling holds the numbers of a table in docs/shuffling.md.
func TestTableOfDocsShuffling(t *testing.T) {
	type row struct {
		miniBatches, splits, leftOut, full, shared int
		short                                      map[int]int // how many have these rows
	}
	m := grouped(t, slices.Repeat([][]int64{{9000}}, 200)...)
	for o, want := range map[Options]row{
		{}:                                       {400, 200, 0, 200, 0, map[int]int{808: 200}},
		{Tail: DropTail}:                         {200, 200, 161_600, 200, 0, map[int]int{}},
		{Boundary: BoundaryNone}:                 {220, 200, 0, 219, 199, map[int]int{5952: 1}},
		{Boundary: BoundaryNone, Tail: DropTail}: {219, 200, 5952, 219, 199, map[int]int{}},
	} {
		p, err := NewPlan(m, o)
		require.NoError(t, err)
		have := row{miniBatches: int(p.MiniBatches()), splits: p.Splits(), leftOut: int(p.LeftOut()), short: map[int]int{}}
		for i := range p.MiniBatches() {
			mb, err := p.MiniBatch(i)
			require.NoError(t, err)
			switch mb.Rows {
			case DefaultBatch:
				have.full++
			default:
				have.short[mb.Rows]++
			}
			if mb.Fragments > 1 {
				have.shared++
			}
		}
		assert.Equal(t, want, have, "%+v", o)
	}
}

// TestSequenceOfTheEpochDependsOnTheShuffle checks that other rows meet in a mini-batch in another epoch.
func TestSequenceOfTheEpochDependsOnTheShuffle(t *testing.T) {
	groups := slices.Repeat([][]int64{{9, 9}}, 20)
	seen := map[string]bool{}
	for epoch := range uint64(5) {
		p, err := NewPlan(grouped(t, groups...), Options{Batch: 12, SplitBatches: 1, Boundary: BoundaryNone, Epoch: epoch})
		require.NoError(t, err)
		seen[fmt.Sprint(fragments(t, p))] = true
	}
	assert.Len(t, seen, 5)
}

func BenchmarkSequenceOfMillionSplits(b *testing.B) {
	m := grouped(b, slices.Repeat([]int64{DefaultBatch * DefaultSplitBatches}, 1_000_000))
	for b.Loop() {
		_, err := NewPlan(m, Options{Boundary: BoundaryNone})
		require.NoError(b, err)
	}
}
