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

// firstSeen returns the different keys in the order of their first appearance, as the definition reads.
func firstSeen(keys []int64) []int64 {
	seen := map[int64]bool{}
	list := []int64{}
	for _, key := range keys {
		if !seen[key] {
			seen[key] = true
			list = append(list, key)
		}
	}
	return list
}

// requireGenerated checks the keys of a generator, and its table, which ends it.
func requireGenerated(t require.TestingT, g *Generator, all []int64) {
	want := firstSeen(all)
	require.Equal(t, want, append([]int64{}, g.Keys()...))
	require.GreaterOrEqual(t, g.Bytes(), 8*int64(len(want)))
	sought := append(slices.Clone(all), math.MinInt64, math.MaxInt64, -1, 0, 1<<22-1, 1<<22, 4095, 4096)
	reference, err := NewReference(want)
	require.NoError(t, err)
	indices, wantIndices := make([]int32, len(sought)), make([]int32, len(sought))
	table := g.Table()
	Lookup(table, indices, sought)
	reference.Lookup(wantIndices, sought)
	require.Equal(t, wantIndices, indices)
	require.GreaterOrEqual(t, table.Bytes(), 4*int64(len(want)))
}

// TestGeneratorIsFirstSeen compares generators with the definition, for keys of arrays and of slots, and of both.
func TestGeneratorIsFirstSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		spans := rapid.SliceOfN(rapid.SampledFrom([]int64{3, 300, 5000, 100_000, 1 << 22, 1 << 23, 1 << 62}), 1, 3).
			Draw(t, "spans")
		negative := rapid.Bool().Draw(t, "negative")
		g := NewGenerator(rapid.SampledFrom([]int64{0, 1 << 15, math.MaxInt64}).Draw(t, "bytes of the array"))
		var all []int64
		for range rapid.IntRange(0, 8).Draw(t, "blocks") {
			block := make([]int64, rapid.SampledFrom([]int{0, 1, 255, 256, 257, 3000}).Draw(t, "length"))
			for i := range block {
				if block[i] = random.Int64N(spans[random.IntN(len(spans))]); negative && random.IntN(4) == 0 {
					block[i] = -block[i]
				}
			}
			all = append(all, block...)
			if rapid.Bool().Draw(t, "another generator") {
				other := NewGenerator(math.MaxInt64)
				Generate(other, block)
				g.Append(other)
			} else {
				Generate(g, block)
			}
		}
		requireGenerated(t, g, all)
	})
}

// TestGeneratorOfNarrowKeys checks keys of 32 bits, of which negative ones are keys like any other.
func TestGeneratorOfNarrowKeys(t *testing.T) {
	narrow := []int32{5, -1, 5, math.MinInt32, 0, math.MaxInt32, -1, 0}
	wide := make([]int64, len(narrow))
	for i, key := range narrow {
		wide[i] = int64(key)
	}
	g := NewGenerator(math.MaxInt64)
	Generate(g, narrow)
	requireGenerated(t, g, wide)
}

// TestGeneratorArrays checks when keys move from slots to the array, and that its length is bounded.
func TestGeneratorArrays(t *testing.T) {
	sequence := func(n int) []int64 {
		keys := make([]int64, n)
		for i := range keys {
			keys[i] = int64(i)
		}
		return keys
	}
	for _, c := range []struct {
		name       string
		arrayBytes int64
		keys       []int64
		length     int
		slots      bool
	}{
		{"no key", math.MaxInt64, nil, 0, false},
		{"one small key", math.MaxInt64, []int64{4095}, leastArray, false},
		{"one greater key", math.MaxInt64, []int64{4096}, 0, true},
		{"a negative key", math.MaxInt64, []int64{-1}, 0, true},
		{"enough keys", math.MaxInt64, append(sequence(8192/arrayShare-1), 4096), 8192, false},
		{"too few keys", math.MaxInt64, append(sequence(8192/arrayShare-2), 4096), 512, true},
		{"enough memory", 4 * 8192, sequence(8192), 8192, false},
		{"too little memory", 4*8192 - 1, sequence(8192), leastArray, true},
		{"the longest array", math.MaxInt64, append(sequence(1<<18), 1<<maxArrayWidth-1), 1 << maxArrayWidth, false},
		{"a key behind it", math.MaxInt64, append(sequence(1<<18), 1<<maxArrayWidth), 1 << 18, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewGenerator(c.arrayBytes)
			Generate(g, c.keys)
			assert.Len(t, g.dense, c.length)
			assert.Equal(t, c.slots, g.used > 0)
			requireGenerated(t, g, c.keys)
		})
	}
}

func BenchmarkGenerate(b *testing.B) {
	for _, c := range []struct {
		name string
		span int64
	}{{"5k", 5000}, {"512k", 524288}, {"1m", 1_000_000}, {"2^31", 1 << 31}} {
		b.Run(c.name, func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			column := make([]int64, 1<<21)
			for i := range column {
				column[i] = random.Int64N(c.span)
			}
			b.SetBytes(int64(len(column)))
			for b.Loop() {
				g := NewGenerator(math.MaxInt64)
				for at := 0; at < len(column); at += 8192 {
					Generate(g, column[at:at+8192])
				}
			}
		})
	}
}
