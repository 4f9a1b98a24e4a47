package accumulator

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/summary"
)

// stateColumns has a column of each kind and form.
var stateColumns = []Column{
	{Name: "integers", Type: "int64", Kind: summary.Integers},
	{Name: "lists", Type: "list of int64", Kind: summary.Integers, List: true},
	{Name: "reals", Type: "float32", Kind: summary.Reals}, {Name: "hashes", Type: "bytes", Kind: summary.Hashes},
	{Name: "lengths", Type: "list of float32", Kind: summary.Lengths, List: true},
}

// stateBlocks returns rows of stateColumns. distinct bounds how many distinct values a column has.
func stateBlocks(rng *rand.Rand, rows, distinct int) []Block {
	var integers, lists, reals, hashes, lengths Block
	for range rows {
		integers.Integers = append(integers.Integers, int64(rng.IntN(distinct))-int64(distinct/2))
		n := int32(rng.IntN(4))
		lists.Lengths, lengths.Lengths = append(lists.Lengths, n), append(lengths.Lengths, n)
		for range n {
			lists.Integers = append(lists.Integers, int64(rng.Uint64()>>rng.IntN(64))*int64(1-2*rng.IntN(2)))
		}
		x := float32(rng.IntN(distinct)) * 0.37
		switch rng.IntN(30) {
		case 0:
			x = float32(math.NaN())
		case 1:
			x = float32(math.Inf(1 - 2*rng.IntN(2)))
		case 2:
			x = float32(math.Copysign(0, -1))
		case 3:
			x = -x * 1e-40
		}
		reals.Reals = append(reals.Reals, x)
		reals.Lengths = append(reals.Lengths, int32(rng.IntN(5)+3)/4)
		hashes.Integers = append(hashes.Integers, int64(rng.Uint64N(uint64(distinct)))*0x1234567)
	}
	return []Block{integers, lists, reals, hashes, lengths}
}

func addBlocks(t testing.TB, b *Builder, blocks []Block) {
	t.Helper()
	for i := range blocks {
		require.NoError(t, b.Add(i, blocks[i]))
	}
}

// TestStatesAtEveryPlace: a summary that went through a state, before and behind the place where tables are pruned, is
// the one that never stopped.
func TestStatesAtEveryPlace(t *testing.T) {
	for _, distinct := range []int{1, 40, 100_000} {
		t.Run(fmt.Sprint(distinct), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(distinct), 2))
			whole, err := NewBuilder(stateColumns, true)
			require.NoError(t, err)
			stopped, err := NewBuilder(stateColumns, true)
			require.NoError(t, err)
			for partition := range 2 {
				rows := int64(0)
				for range 6 {
					blocks := stateBlocks(rng, 900, distinct)
					addBlocks(t, whole, blocks)
					rows += 900
					state, err := stopped.AppendOpen(nil)
					require.NoError(t, err)
					next, err := NewBuilder(stateColumns, true)
					require.NoError(t, err)
					next.totals, next.partitions, next.rows = stopped.totals, stopped.partitions, stopped.rows
					require.NoError(t, next.SetOpen(state))
					again, err := next.AppendOpen(nil)
					require.NoError(t, err)
					require.Equal(t, state, again)
					assert.Equal(t, rows-900, next.OpenRows())
					stopped = next
					addBlocks(t, stopped, blocks)
				}
				require.NoError(t, whole.EndPartition(fmt.Sprint(partition), rows))
				require.NoError(t, stopped.EndPartition(fmt.Sprint(partition), rows))
			}
			assert.Equal(t, encoded(t, whole), encoded(t, stopped))
		})
	}
}

func encoded(t testing.TB, b *Builder) string {
	t.Helper()
	made, err := b.Finish(summary.Digest{})
	require.NoError(t, err)
	file, err := made.Encode()
	require.NoError(t, err)
	return string(file)
}

// openState returns the state of some rows.
func openState(t testing.TB, rows, distinct int) []byte {
	t.Helper()
	b, err := NewBuilder(stateColumns, true)
	require.NoError(t, err)
	if rows > 0 {
		addBlocks(t, b, stateBlocks(rand.New(rand.NewPCG(1, 2)), rows, distinct))
	}
	state, err := b.AppendOpen(nil)
	require.NoError(t, err)
	return state
}

// TestStatesAreBounded: a state does not grow with the rows.
func TestStatesAreBounded(t *testing.T) {
	small, large := openState(t, 20_000, 1<<40), openState(t, 80_000, 1<<40)
	assert.Less(t, len(large), 2*len(small))
	assert.Less(t, len(large), len(stateColumns)*200_000)
}

// TestDamagedStates: each cut, and changes that a checksum would find but a hostile writer would not make, are errors
// that leave the builder as it was.
func TestDamagedStates(t *testing.T) {
	state := openState(t, 300, 40)
	b, err := NewBuilder(stateColumns, true)
	require.NoError(t, err)
	require.NoError(t, b.SetOpen(state))
	for n := 0; n < len(state); n += 5 {
		require.ErrorIs(t, b.SetOpen(state[:n]), ErrState, "%d bytes", n)
	}
	require.ErrorIs(t, b.SetOpen(append(bytes.Clone(state), 0)), ErrState)
	assert.EqualValues(t, 300, b.OpenRows())
	again, err := b.AppendOpen(nil)
	require.NoError(t, err)
	assert.Equal(t, state, again)

	one := []Column{{Name: "x", Kind: summary.Integers}}
	counts := func(rows, nulls, values, shortest, longest, finite byte) []byte {
		return []byte{rows, nulls, values, shortest, longest, 0, 0, 0, finite}
	}
	// Two rows of the value 3: least and greatest 3, sum 6, squares 18, a table of one value.
	sums := func(least, greatest, sum, squares byte) []byte {
		b := append([]byte{least, greatest, sum}, make([]byte, 15)...)
		return append(append(b, squares), make([]byte, 23)...)
	}
	good := append(append(counts(2, 0, 2, 1, 1, 2), sums(6, 6, 6, 18)...), 0, 0, 1, 3, 2)
	for name, damaged := range map[string][]byte{
		"more nulls than rows":      append(append(counts(2, 3, 2, 1, 1, 2), sums(6, 6, 6, 18)...), 0, 0, 1, 3, 2),
		"lists of a scalar":         append(append(counts(2, 0, 2, 1, 2, 2), sums(6, 6, 6, 18)...), 0, 0, 1, 3, 2),
		"other finite values":       append(append(counts(2, 0, 2, 1, 1, 1), sums(6, 6, 6, 18)...), 0, 0, 1, 3, 2),
		"least above greatest":      append(append(counts(2, 0, 2, 1, 1, 2), sums(8, 6, 6, 18)...), 0, 0, 1, 3, 2),
		"squares below the sum's":   append(append(counts(2, 0, 2, 1, 1, 2), sums(6, 6, 6, 17)...), 0, 0, 1, 3, 2),
		"a table of other counts":   append(append(counts(2, 0, 2, 1, 1, 2), sums(6, 6, 6, 18)...), 0, 0, 1, 3, 1),
		"a value that was seen 0":   append(append(counts(2, 0, 2, 1, 1, 2), sums(6, 6, 6, 18)...), 0, 0, 1, 3, 0),
		"misses without pruning":    append(append(counts(2, 0, 2, 1, 1, 2), sums(6, 6, 6, 18)...), 0, 1, 1, 3, 2),
		"a pruned table, no sketch": append(append(counts(2, 0, 2, 1, 1, 2), sums(6, 6, 6, 18)...), 1, 1, 1, 3, 1),
	} {
		b, err := NewBuilder(one, true)
		require.NoError(t, err)
		require.NoError(t, b.SetOpen(good), "what the cases change is a state")
		require.ErrorIs(t, b.SetOpen(damaged), ErrState, name)
	}
}

// FuzzState: bytes that are a state have one form, and end in a summary or in an error, never in a panic.
func FuzzState(f *testing.F) {
	f.Add(openState(f, 0, 1))
	f.Add(openState(f, 60, 5))
	f.Add(openState(f, 5000, 1<<40))
	f.Fuzz(func(t *testing.T, state []byte) {
		b, err := NewBuilder(stateColumns, true)
		require.NoError(t, err)
		if err := b.SetOpen(state); err != nil {
			require.ErrorIs(t, err, ErrState)
			return
		}
		again, err := b.AppendOpen(nil)
		require.NoError(t, err)
		other, err := NewBuilder(stateColumns, true)
		require.NoError(t, err)
		require.NoError(t, other.SetOpen(again))
		twice, err := other.AppendOpen(nil)
		require.NoError(t, err)
		require.Equal(t, again, twice)
		addBlocks(t, b, stateBlocks(rand.New(rand.NewPCG(3, 4)), 20, 7))
		if err := b.EndPartition("p", b.OpenRows()); err != nil {
			return
		}
		if made, err := b.Finish(summary.Digest{}); err == nil {
			_, _ = made.Encode() // values that contradict each other are an error of the file
		}
	})
}
