package vocabulary

import (
	"encoding/binary"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// aligned copies b to memory that begins at a multiple of StoredAlign.
func aligned(b []byte) []byte {
	words := make([]uint64, len(b)/8+1)
	m := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(b))
	copy(m, b)
	return m
}

// TestStoredIsTheReference compares both forms of stored tables with the map.
func TestStoredIsTheReference(t *testing.T) {
	edges := []int64{math.MinInt64, math.MaxInt64 - 4000, -1, 0, math.MinInt32}
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Int64()
		if rapid.Bool().Draw(t, "dense") {
			least := rapid.SampledFrom(edges).Draw(t, "least")
			key = rapid.Custom(func(t *rapid.T) int64 { return least + rapid.Int64Range(0, 3000).Draw(t, "offset") })
		}
		keys := rapid.SliceOfNDistinct(key, 0, 400, rapid.ID[int64]).Draw(t, "keys")
		shape, b, err := Store(keys)
		require.NoError(t, err)
		require.NoError(t, shape.Check())
		require.EqualValues(t, len(b), shape.Bytes())
		require.Equal(t, shape.Bytes(), ShapeOf(keys).Bytes(), "known before the table is made")
		table, err := View(shape, aligned(b))
		require.NoError(t, err)
		reference, err := NewReference(keys)
		require.NoError(t, err)
		asked := append(rapid.SliceOfN(key, 0, 200).Draw(t, "asked"), keys...)
		want, got := make([]int32, len(asked)), make([]int64, len(asked))
		reference.Lookup(want, asked)
		complete := table.Lookup(got, asked)
		all := true
		for i := range want {
			require.EqualValues(t, want[i], got[i], "key %d", asked[i])
			all = all && want[i] != Absent
		}
		require.Equal(t, all, complete)
	})
}

func TestStoreRefusesDuplicates(t *testing.T) {
	for _, keys := range [][]int64{{5, 6, 5}, {5, 1 << 60, 5}} {
		_, _, err := Store(keys)
		var twice *DuplicateError
		require.ErrorAs(t, err, &twice)
		assert.Equal(t, DuplicateError{Key: 5, First: 0, Second: 2}, *twice)
	}
}

// TestShapesThatAreRefused checks every limit of a shape from both sides.
func TestShapesThatAreRefused(t *testing.T) {
	array := Shape{Entries: 3, Keys: 3, Least: -1}
	hashed := Shape{Hashed: true, Entries: 2, Keys: 1, Multiplier: 3, Probes: 1}
	require.NoError(t, array.Check())
	require.NoError(t, hashed.Check())
	for name, change := range map[string]func(a, h *Shape) *Shape{
		"too many keys":    func(a, _ *Shape) *Shape { a.Keys, a.Entries = 1<<31, 1<<31; return a },
		"too few entries":  func(a, _ *Shape) *Shape { a.Entries = 2; return a },
		"too many entries": func(a, _ *Shape) *Shape { a.Entries = 1<<34 + 1<<12 + 1; return a },
		"two forms":        func(a, _ *Shape) *Shape { a.Multiplier = 1; return a },
		"probes":           func(a, _ *Shape) *Shape { a.Probes = 1; return a },
		"a least key":      func(_, h *Shape) *Shape { h.Least = 1; return h },
		"one slot":         func(_, h *Shape) *Shape { h.Entries = 1; return h },
		"three slots":      func(_, h *Shape) *Shape { h.Entries = 3; return h },
		"even":             func(_, h *Shape) *Shape { h.Multiplier = 2; return h },
		"no probe":         func(_, h *Shape) *Shape { h.Probes = 0; return h },
		"many probes":      func(_, h *Shape) *Shape { h.Probes = 1025; return h },
	} {
		a, h := array, hashed
		require.Error(t, change(&a, &h).Check(), name)
	}
	hashed.Probes = 1024
	require.NoError(t, hashed.Check())
	array.Entries = 1<<34 + 1<<12
	require.NoError(t, array.Check())

	_, err := View(hashed, make([]byte, 31))
	require.ErrorContains(t, err, "a table of 32 bytes in 31")
	_, err = View(hashed, aligned(make([]byte, 36))[4:])
	require.ErrorContains(t, err, "multiple of 8")
}

// FuzzView looks keys up in any bytes: a lookup ends and reads nothing outside them.
func FuzzView(f *testing.F) {
	for _, keys := range [][]int64{{}, {1, 2, 5}, {9, -1 << 50, 1 << 50}} {
		s, b, err := Store(keys)
		require.NoError(f, err)
		f.Add(s.Hashed, s.Entries, s.Keys, s.Least, s.Multiplier, s.Probes, b, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	}
	f.Fuzz(func(t *testing.T, hashed bool, entries uint64, keys uint32, least int64, multiplier uint64, probes uint32,
		b, asked []byte) {
		v, err := View(Shape{Hashed: hashed, Entries: entries, Keys: keys, Least: least, Multiplier: multiplier,
			Probes: probes}, aligned(b))
		if err != nil {
			return
		}
		var list []int64
		for ; len(asked) >= 8; asked = asked[8:] {
			list = append(list, int64(binary.LittleEndian.Uint64(asked)))
		}
		indices := make([]int64, len(list))
		complete := v.Lookup(indices, list)
		for _, index := range indices {
			require.Less(t, index, int64(MaxKeys))
			complete = complete && index >= 0
		}
		require.Equal(t, complete, v.Lookup(indices, list))
	})
}
