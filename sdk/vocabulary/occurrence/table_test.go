package occurrence

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// seenKeys is what was seen of keys, as the definition reads.
type seenKeys map[int64]Entry

func (s seenKeys) add(key int64, position uint64) {
	e, ok := s[key]
	if !ok {
		e = Entry{Key: key, Position: position}
	}
	e.Position, e.Count = min(e.Position, position), e.Count+1
	s[key] = e
}

// sorted returns the entries in the order of their keys.
func (s seenKeys) sorted() []Entry {
	list := []Entry{}
	for _, e := range s {
		list = append(list, e)
	}
	slices.SortFunc(list, compareByKey)
	return list
}

// drawKeys draws a source of keys: behind a modulus, few of many, everywhere, around an array's ends.
func drawKeys(t *rapid.T, random *rand.Rand) func() int64 {
	switch rapid.IntRange(0, 4).Draw(t, "keys") {
	case 0:
		modulus := rapid.SampledFrom([]int64{1, 2, 5000, leastDense, leastDense + 1, 1 << 16, 100_000}).Draw(t, "modulus")
		return func() int64 { return random.Int64N(modulus) }
	case 1:
		step := rapid.Int64Range(1, 1<<40).Draw(t, "step")
		return func() int64 { return random.Int64N(3000) * step }
	case 2:
		return func() int64 { return int64(random.Uint64()) }
	case 3:
		return func() int64 { return random.Int64N(1<<15) - 1<<14 }
	}
	edges := []int64{0, leastDense - 1, leastDense, 1<<maxDenseWidth - 1, 1 << maxDenseWidth, -1, math.MinInt64,
		math.MaxInt64}
	return func() int64 { return edges[random.IntN(len(edges))] }
}

// TestATableIsTheDefinition folds blocks of columns and lists in, in and out of order, and compares with a map. The
// keys change on the way, so that arrays begin and grow while their keys are in the hash table.
func TestATableIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		table := Table{mostDense: rapid.SampledFrom([]int{0, 1 << 13, 1 << 17, 1 << maxDenseWidth}).Draw(t, "longest array")}
		want, hashed := seenKeys{}, seenKeys{}
		row := uint64(0)
		for range rapid.IntRange(1, 12).Draw(t, "blocks") {
			next := drawKeys(t, random)
			keys := make([]int64, rapid.IntRange(0, 3000).Draw(t, "keys of a block"))
			for i := range keys {
				keys[i] = next()
			}
			if rapid.Bool().Draw(t, "out of order") {
				row = random.Uint64N(row + 1)
			}
			step := uint64(1)
			if rapid.Bool().Draw(t, "column") {
				table.AddColumn(keys, row<<PlaceBits)
				step <<= PlaceBits
			} else {
				table.AddList(keys, row<<PlaceBits)
			}
			for i, key := range keys {
				want.add(key, row<<PlaceBits+uint64(i)*step)
			}
			row += uint64(len(keys))
			if rapid.IntRange(0, 5).Draw(t, "write to disk") == 0 {
				for _, e := range table.TakeHashed() {
					before, ok := hashed[e.Key]
					if ok {
						e.foldEntry(before)
					}
					hashed[e.Key] = e
				}
			}
			require.LessOrEqual(t, len(table.dense.counts), table.mostDense)
			require.EqualValues(t, len(table.dense.counts)*denseBytes, table.dense.memoryBytes())
		}
		last := table.TakeAll()
		assert.True(t, slices.IsSortedFunc(last, compareByKey))
		for _, e := range last {
			if before, ok := hashed[e.Key]; ok {
				e.foldEntry(before)
			}
			hashed[e.Key] = e
		}
		assert.Equal(t, want.sorted(), hashed.sorted())
		assert.Empty(t, table.TakeAll())
	})
}

// TestSmallKeysGetAnArray checks when keys move to an array, from both sides.
func TestSmallKeysGetAnArray(t *testing.T) {
	table := Table{mostDense: 1 << 20}
	table.AddColumn([]int64{leastDense}, 1<<PlaceBits)
	assert.Empty(t, table.dense.counts, "one key beyond the least array")
	table.AddColumn([]int64{leastDense - 1}, 2<<PlaceBits)
	assert.Len(t, table.dense.counts, leastDense)
	assert.Equal(t, 1, table.hashed.used)

	keys := make([]int64, 1<<16/denseShare-2)
	for i := range keys {
		keys[i] = 1<<15 + int64(i)
	}
	table.AddColumn(keys[1:], 3<<PlaceBits)
	assert.Len(t, table.dense.counts, leastDense, "one key is missing")
	table.AddColumn(keys[:1], 4<<PlaceBits)
	assert.Len(t, table.dense.counts, 1<<16)
	assert.Zero(t, table.hashed.used)
	assert.Equal(t, []Entry{{leastDense - 1, 2 << PlaceBits, 1}, {leastDense, 1 << PlaceBits, 1}}, table.TakeAll()[:2])
}

// TestCountsBeyondTheirField carries counts of an array over, in the array and on the way into it.
func TestCountsBeyondTheirField(t *testing.T) {
	table := Table{mostDense: leastDense}
	table.hashed.addBlock([]int64{7, 8}, []uint16{0, 1}, 0, 1, true)
	for i := range table.hashed.slots {
		if s := &table.hashed.slots[i]; s.key == 7 && s.count > 0 {
			s.count = 1 << 40
		} else if s.key == 8 {
			s.count = math.MaxUint64
		}
	}
	table.AddList([]int64{7, 8, 9}, 2)
	table.AddList([]int64{7, 8, 9}, 5)
	table.AddList([]int64{7, 9}, 8)
	table.AddList([]int64{7, 9}, 10)
	assert.Equal(t, []Entry{{7, 0, 1<<40 + 4}, {8, 1, math.MaxUint64}, {9, 4, 4}}, table.TakeAll())

	for _, times := range []int{math.MaxUint16 - 1, math.MaxUint16, math.MaxUint16 + 1, 3*math.MaxUint16 + 1} {
		for lanes := 1; lanes <= mostLanes; lanes++ { // the last turn has no lane for the keys
			table := Table{mostDense: leastDense}
			for i := range lanes {
				table.AddList([]int64{7}, uint64(2000-i))
			}
			for i := range table.dense.lanes[1:] {
				table.dense.lanes[1+i].greatest = math.MaxUint64
			}
			if lanes == mostLanes {
				table.dense.lanes[0].greatest = math.MaxUint64
			} else {
				table.dense.lanes[0].greatest = 0
			}
			table.AddList([]int64{5}, 1)
			table.AddList(slices.Repeat([]int64{5, 6}, times), 2)
			require.Len(t, table.dense.lanes, lanes)
			assert.Equal(t, []Entry{
				{5, 1, uint64(times) + 1}, {6, 3, uint64(times)}, {7, uint64(2001 - lanes), uint64(lanes)},
			}, table.TakeAll(), "%d times, %d lanes", times, lanes)
		}
	}

	h := hashedKeys{}
	h.addBlock([]int64{3}, []uint16{0}, 0, 1, true)
	i := slices.IndexFunc(h.slots, func(s hashedSlot) bool { return s.count > 0 })
	h.slots[i].count = math.MaxUint64
	h.addBlock([]int64{3}, []uint16{0}, 0, 1, true)
	assert.Equal(t, []Entry{{3, 0, math.MaxUint64}}, h.takeAll(), "a count stays at its greatest value")
}

// TestTheLongestArrayFitsIntoMemory checks the bound of an array from both sides.
func TestTheLongestArrayFitsIntoMemory(t *testing.T) {
	assert.Equal(t, 1<<maxDenseWidth, denseLength(1<<40))
	assert.Equal(t, 1<<20, denseLength(denseBytes<<20))
	assert.Equal(t, 1<<19, denseLength(denseBytes<<20-1))
	assert.Equal(t, 1, denseLength(denseBytes))
	assert.Zero(t, denseLength(denseBytes-1))
	assert.Equal(t, 1<<20, NewTable(512<<20*5/8/26).mostDense, "26 columns behind a modulus of a million")
}

// TestEntriesAreSortedByDigits compares with a sort by comparisons, for lengths around the least.
func TestEntriesAreSortedByDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		mask := rapid.Uint64().Draw(t, "bits")
		list := make([]Entry, leastSorted+rapid.IntRange(-2, 500).Draw(t, "entries"))
		for i := range list {
			list[i] = Entry{int64(random.Uint64() & mask), random.Uint64() & mask, random.Uint64N(9)}
		}
		SortByKey(list)
		assert.True(t, slices.IsSortedFunc(list, compareByKey))
		want := slices.Clone(list)
		slices.SortStableFunc(want, func(a, b Entry) int { return cmp.Compare(a.Position, b.Position) })
		SortByPosition(list)
		assert.Equal(t, want, list)
	})
}
