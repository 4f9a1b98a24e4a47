package record

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/dataset"
)

// manifestOf returns the manifest of partitions that have some rows each.
func manifestOf(rows ...int64) *dataset.Manifest {
	m := &dataset.Manifest{}
	for _, n := range rows {
		m.Partitions = append(m.Partitions, dataset.Partition{Rows: n})
	}
	return m
}

// TestPassing: the numbers of passing rows survive being stored, in several pieces where they are many.
func TestPassing(t *testing.T) {
	rows := make([]int64, 300_000)
	passing := make([]int64, len(rows))
	for i := range rows {
		rows[i] = math.MaxInt64
		passing[i] = int64(uint64(i) * 0x9e3779b97f4a7c15 >> 1)
	}
	pieces, err := PackPassing(passing)
	require.NoError(t, err)
	assert.Greater(t, len(pieces), 1)
	for _, p := range pieces {
		assert.LessOrEqual(t, len(p), PieceBytes)
	}
	got, err := UnpackPassing(pieces, manifestOf(rows...))
	require.NoError(t, err)
	assert.Equal(t, passing, got)
}

func TestDamagedPassing(t *testing.T) {
	pieces, err := PackPassing([]int64{5, 0, 7})
	require.NoError(t, err)
	_, err = UnpackPassing(pieces, manifestOf(5, 0, 7))
	require.NoError(t, err)
	_, err = UnpackPassing(pieces, manifestOf(5, 0, 6))
	require.ErrorContains(t, err, "is damaged", "more rows pass than there are")
	_, err = UnpackPassing(pieces, manifestOf(5, 0))
	require.ErrorContains(t, err, "more than partitions")
	_, err = UnpackPassing(pieces, manifestOf(5, 0, 7, 1))
	require.ErrorContains(t, err, "is damaged", "there are fewer")
	_, err = UnpackPassing([][]byte{{1, 2, 3}}, manifestOf(5))
	require.ErrorContains(t, err, "numbers of passing rows")
	_, err = UnpackPassing(nil, manifestOf(5))
	require.ErrorContains(t, err, "numbers of passing rows")
}

// FuzzUnpackPassing: stored bytes give numbers that no partition's rows exceed, or an error.
func FuzzUnpackPassing(f *testing.F) {
	pieces, err := PackPassing([]int64{5, 0, 7})
	require.NoError(f, err)
	f.Add(pieces[0])
	f.Add([]byte{})
	m := manifestOf(5, 0, 7)
	f.Fuzz(func(t *testing.T, b []byte) {
		passing, err := UnpackPassing([][]byte{b}, m)
		if err != nil {
			return
		}
		require.Len(t, passing, len(m.Partitions))
		for i, n := range passing {
			require.LessOrEqual(t, n, m.Partitions[i].Rows)
			require.GreaterOrEqual(t, n, int64(0))
		}
	})
}
