package vocabulary

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTableIsTheReference compares all forms of tables with the map, for keys that are there and keys that are not.
func TestTableIsTheReference(t *testing.T) {
	edges := []int64{math.MinInt64, math.MaxInt64, -1, 0, 1, math.MinInt32, math.MaxInt32}
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Int64()
		if span := rapid.SampledFrom([]int64{0, 3000, math.MaxUint32, math.MaxUint32 + 1}).Draw(t, "span"); span > 0 {
			least := rapid.SampledFrom(edges).Draw(t, "least")
			key = rapid.Custom(func(t *rapid.T) int64 {
				return least + rapid.OneOf(rapid.SampledFrom([]int64{0, span}), rapid.Int64Range(0, span)).Draw(t, "offset")
			})
		}
		keys := rapid.SliceOfNDistinct(key, 0, 400, rapid.ID[int64]).Draw(t, "keys")
		table, err := NewTable(keys)
		require.NoError(t, err)
		reference, err := NewReference(keys)
		require.NoError(t, err)
		sought := append(append([]int64{}, edges...), keys...)
		sought = append(sought, rapid.SliceOfN(key, 0, 100).Draw(t, "others")...)
		got, want := make([]int32, len(sought)), make([]int32, len(sought))
		complete := Lookup(table, got, sought)
		reference.Lookup(want, sought)
		assert.Equal(t, want, got)
		assert.Equal(t, !slices.Contains(want, Absent), complete)

		// In place, and narrower keys.
		inPlace := slices.Clone(sought)
		assert.Equal(t, complete, Lookup(table, inPlace, inPlace))
		narrow, narrowAsWide := []int32{}, []int64{}
		for i, key := range sought {
			assert.EqualValues(t, want[i], inPlace[i])
			narrow, narrowAsWide = append(narrow, int32(key)), append(narrowAsWide, int64(int32(key)))
		}
		reference.Lookup(want, narrowAsWide)
		assert.Equal(t, !slices.Contains(want, Absent), Lookup(table, narrow, narrow))
		assert.Equal(t, want, narrow)
		for i := range keys {
			assert.True(t, Lookup(table, got[:i+1], keys[:i+1]))
		}
	})
}

// TestFormOfTables checks at which spans a table is an array, and at which its slots are narrow.
func TestFormOfTables(t *testing.T) {
	spread := func(n, step int64) []int64 {
		keys := make([]int64, n)
		for i := range keys {
			keys[i] = int64(i) * step
		}
		return keys
	}
	for _, c := range []struct {
		name          string
		keys          []int64
		dense, narrow bool
	}{
		{"none", nil, true, false},
		{"two within the least span", []int64{5, 5 + denseLeast - 1}, true, false},
		{"two behind the least span", []int64{5, 5 + denseLeast}, false, true},
		{"many, 8 apart", spread(1<<14, denseSpread), true, false},
		{"many, 9 apart", spread(1<<14, denseSpread+1), false, true},
		{"within 32 bits", []int64{-7, math.MaxUint32 - 7}, false, true},
		{"behind 32 bits", []int64{-7, math.MaxUint32 - 6}, false, false},
		{"the whole range", []int64{math.MinInt64, math.MaxInt64}, false, false},
	} {
		table, err := NewTable(c.keys)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.dense, table.dense != nil, c.name)
		assert.Equal(t, c.narrow, table.narrow != nil, c.name)
		assert.GreaterOrEqual(t, table.Bytes(), int64(4*len(c.keys)), c.name)
	}
}

// TestATableOfManyNarrowKeys has more keys than half-full slots take, and of which each finds its index.
func TestATableOfManyNarrowKeys(t *testing.T) {
	const spread = 0x9e3779b1
	keys := make([]int64, sparseKeys+1)
	for i := range keys {
		keys[i] = int64(uint32(i * spread))
	}
	table, err := NewTable(keys)
	require.NoError(t, err)
	assert.InDelta(t, narrowBytes*4/3.0, float64(table.Bytes())/float64(len(keys)), .1)
	indices := make([]int32, len(keys))
	require.True(t, Lookup(table, indices, keys))
	for i, index := range indices {
		if int(index) != i { // require.EqualValues takes half a microsecond
			require.EqualValues(t, i, index)
		}
	}
	absent := []int64{int64(uint32(len(keys) * spread)), keys[3] + 1<<32, keys[3] - 1<<32}
	require.False(t, Lookup(table, indices[:3], absent))
	assert.Equal(t, []int32{Absent, Absent, Absent}, indices[:3])
}

// TestTwiceIsRefused checks that a key with two indices is found in all forms and by the reference.
func TestTwiceIsRefused(t *testing.T) {
	for _, keys := range [][]int64{{7, 8, 7}, {0, 1 << 30, 3, 1 << 30}, {math.MinInt64, 4, math.MaxInt64, 4}} {
		_, err := NewTable(keys)
		var twice *DuplicateError
		require.ErrorAs(t, err, &twice)
		_, err = NewReference(keys)
		var reference *DuplicateError
		require.ErrorAs(t, err, &reference)
		assert.Equal(t, reference, twice)
	}
}

func BenchmarkLookup(b *testing.B) {
	for _, c := range []struct {
		name string
		keys int
		span int64
	}{{"5k", 5000, 5000}, {"512k", 524288, 524288}, {"1m", 1 << 20, 1 << 20}, {"4m of 2^31", 4 << 20, 1 << 31}} {
		b.Run(c.name, func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			seen := make(map[int64]bool, c.keys)
			keys := make([]int64, 0, c.keys)
			for len(keys) < c.keys*9/10 {
				if key := random.Int64N(c.span); !seen[key] {
					seen[key] = true
					keys = append(keys, key)
				}
			}
			table, err := NewTable(keys)
			require.NoError(b, err)
			column, indices := make([]int64, 8192), make([]int32, 8192)
			for i := range column {
				column[i] = keys[random.IntN(len(keys))]
			}
			b.SetBytes(int64(len(column)))
			for b.Loop() {
				Lookup(table, indices, column)
			}
		})
	}
}
