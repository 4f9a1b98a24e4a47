package vocabulary

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// requireEncoded checks what an encoder makes of a column in blocks of some lengths, and of the same column in 16 bits
// if no key has more.
func requireEncoded(t require.TestingT, e *Encoder, column []uint32, lengths []int) {
	wide, all := make([]int64, len(column)), uint32(0)
	for i, key := range column {
		wide[i] = int64(key)
		all |= key
	}
	wantKeys := firstSeen(wide)
	reference, err := NewReference(wantKeys)
	require.NoError(t, err)
	want := make([]int32, len(column))
	reference.Lookup(want, wide)
	requireIndices(t, e, slices.Clone(column), lengths, bits.Len32(all), wantKeys, want)
	if all > math.MaxUint16 {
		return
	}
	narrow := make([]uint16, len(column))
	for i, key := range column {
		narrow[i] = uint16(key)
	}
	requireIndices(t, &Encoder{}, narrow, lengths, bits.Len32(all), wantKeys, want)
}

func requireIndices[K EncodedKey](t require.TestingT, e *Encoder, column []K, lengths []int, width int,
	wantKeys []int64, want []int32) {
	var blocks [][]K
	left := column
	for _, length := range lengths {
		length = min(length, len(left))
		blocks = append(blocks, left[:length])
		left = left[length:]
	}
	keys := Encode(e, append(blocks, left), width)
	if !slices.Equal(wantKeys, keys) {
		require.Equal(t, wantKeys, append([]int64{}, keys...))
	}
	for i, index := range column {
		if want[i] != int32(index) {
			require.EqualValues(t, want[i], index, "key %d", i)
		}
	}
}

// TestEncoderIsFirstSeen compares encoders with the definition, one column after the other: of keys that have an array,
// and of keys in one part and in several.
func TestEncoderIsFirstSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		e := &Encoder{}
		for range rapid.IntRange(1, 3).Draw(t, "columns") {
			span := rapid.SampledFrom([]int64{1, 300, denseLeast, 40_000, 1 << 22, 1<<22 + 1, 1 << 32}).Draw(t, "span")
			step := uint32(rapid.SampledFrom([]int64{1, 1 << 12, 1 << 20}).Draw(t, "step"))
			n := rapid.SampledFrom([]int{0, 1, 255, 256, 257, partKeys - 1, partKeys, 5 * partKeys}).Draw(t, "keys")
			column := make([]uint32, n)
			for i := range column {
				column[i] = uint32(random.Int64N(span)) * step
			}
			requireEncoded(t, e, column, rapid.SliceOfN(rapid.IntRange(0, n), 0, 4).Draw(t, "lengths of blocks"))
		}
	})
}

// TestEncoderForms checks both sides of the bounds at which keys have an array.
func TestEncoderForms(t *testing.T) {
	sequence := func(n int, last uint32) []uint32 {
		column := make([]uint32, n)
		for i := range column {
			column[i] = uint32(i)
		}
		column[n-1] = last
		return column
	}
	for _, c := range []struct {
		name   string
		column []uint32
		dense  bool
	}{
		{"none", nil, true},
		{"a small key", []uint32{denseLeast - 1}, true},
		{"a greater key", []uint32{denseLeast}, false},
		{"many keys", sequence(denseLeast, encodedSpread*denseLeast-1), true},
		{"too spread", sequence(denseLeast, encodedSpread*denseLeast), false},
		{"the longest array", sequence(1<<21, 1<<maxArrayWidth-1), true},
		{"a key behind it", sequence(1<<21+1, 1<<maxArrayWidth), false},
		{"the greatest key", []uint32{math.MaxUint32, 0, math.MaxUint32}, false},
		{"one key", slices.Repeat([]uint32{1 << 30}, 3*partKeys), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &Encoder{}
			requireEncoded(t, e, c.column, nil)
			require.Equal(t, c.dense, e.array != nil)
			require.Equal(t, !c.dense, e.places != nil)
		})
	}
}

// TestEncoderOfSteadyColumns checks columns whose chunks have few new keys, none, and then many: an encoder takes them
// in another way.
func TestEncoderOfSteadyColumns(t *testing.T) {
	var column []uint32
	known := func(n int) {
		for i := range n {
			column = append(column, uint32(i%100))
		}
	}
	known(3 * denseChunk)
	column = append(column, 200, 201, 200, 202)
	known(2*denseChunk + 7)
	for i := range uint32(3 * denseChunk) { // each new key twice within a chunk
		column = append(column, 300+i/2)
	}
	for _, few := range []int{steadyKeys, steadyKeys + 1} { // on both sides of the bound
		for i := range few {
			column = append(column, uint32(5000+100*few+i))
		}
		known(denseChunk - few)
	}
	requireEncoded(t, &Encoder{}, column, []int{1, 2 * denseChunk, 17})
}

func BenchmarkEncode(b *testing.B) {
	for _, c := range []struct {
		name string
		span int64
	}{{"5k", 5000}, {"512k", 524288}, {"1m", 1_000_000}, {"2^31", 1 << 31}} {
		b.Run(c.name, func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			column := make([]uint32, 1<<20)
			for i := range column {
				column[i] = uint32(random.Int64N(c.span))
			}
			e, indices := &Encoder{}, make([]uint32, len(column))
			b.SetBytes(int64(len(column)))
			for b.Loop() {
				copy(indices, column)
				Encode(e, [][]uint32{indices}, bits.Len32(uint32(c.span-1)))
			}
		})
	}
}
