package trainmgr

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func loads(p float64, rows ...int64) []DriveLoad {
	var l []DriveLoad
	for i, r := range rows {
		l = append(l, DriveLoad{Name: string(rune('a' + i)), RowsPerSecond: p, Rows: r})
	}
	return l
}

func TestAllocateIsTOverP(t *testing.T) {
	for _, c := range []struct {
		name   string
		t, p   float64
		drives int
		want   int
		wanted int
		stall  time.Duration
	}{
		{"one drive is enough", 100, 100, 4, 1, 1, 0},
		{"a little more wants another", 101, 100, 4, 2, 2, 0},
		{"exactly all", 400, 100, 4, 4, 4, 0},
		{"not enough drives", 800, 100, 4, 4, 8, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := make([]int64, c.drives)
			for i := range rows {
				rows[i] = 1000
			}
			a, err := Allocate(c.t, loads(c.p, rows...), 0)
			require.NoError(t, err)
			assert.Equal(t, c.want, a.Drives)
			assert.Equal(t, c.wanted, a.Wanted)
			assert.Equal(t, c.stall, a.ExpectedStall)
		})
	}
}

func TestAllocateForetellsAStallOfPlacement(t *testing.T) {
	// T = 200 rows/s takes 10 s for 2,000 rows; drive a alone needs 18 s for its 1,800.
	a, err := Allocate(200, loads(100, 1800, 200), 0)
	require.NoError(t, err)
	assert.Equal(t, 2, a.Drives)
	assert.Equal(t, 8*time.Second, a.ExpectedStall)
	assert.Contains(t, a.Note, "drive a holds 90% of the rows")
}

func TestAllocateUnequalDrivesFromTheSlowest(t *testing.T) {
	a, err := Allocate(150, []DriveLoad{{"a", 100, 1}, {"b", 400, 1}, {"c", 60, 1}}, 0)
	require.NoError(t, err)
	assert.Equal(t, 2, a.Drives, "60 + 100 sustain 150 whichever two run")
}

func TestAllocateWithoutTRunsAll(t *testing.T) {
	a, err := Allocate(0, loads(10, 5, 5, 5), 0)
	require.NoError(t, err)
	assert.Equal(t, 3, a.Drives)
	assert.Zero(t, a.ExpectedStall)
}

func TestAllocateRefuses(t *testing.T) {
	_, err := Allocate(1, nil, 0)
	require.ErrorIs(t, err, ErrOptions)
	for _, p := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		_, err := Allocate(1, loads(p, 1), 0)
		require.ErrorIs(t, err, ErrOptions)
	}
}
