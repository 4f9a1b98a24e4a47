package allocation

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func workersOf(p float64, rows ...int64) []Worker {
	var l []Worker
	for i, r := range rows {
		l = append(l, Worker{Name: string(rune('a' + i)), RowsPerSecond: p, Rows: r})
	}
	return l
}

func TestWorkersForIsTOverPRoundedUp(t *testing.T) {
	for _, c := range []struct {
		name            string
		trainer, worker float64
		want            int
	}{
		{"exactly one", 100, 100, 1},
		{"one row/s more", 101, 100, 2},
		{"one row/s less than three", 299, 100, 3},
		{"exactly three", 300, 100, 3},
		{"three, but for rounding", 0.1 + 0.2, 0.1, 3},
		{"a slow trainer", 1, 1e9, 1},
		{"more than an int32 counts", 1e30, 1, math.MaxInt32},
		{"endless", math.Inf(1), 1, math.MaxInt32},
		{"T is not known", 0, 100, 0},
		{"P is not known", 100, 0, 0},
		{"T is not a number", math.NaN(), 100, 0},
		{"P is not a number", 100, math.NaN(), 0},
		{"T is negative", -1, 100, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, WorkersFor(c.trainer, c.worker))
		})
	}
}

// TestAllocateAgreesWithWorkersFor compares the count of unequal workers with T/P if the workers are equal.
func TestAllocateAgreesWithWorkersFor(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := float64(rapid.IntRange(1, 1_000_000).Draw(rt, "p"))
		trainer := float64(rapid.IntRange(1, 100_000_000).Draw(rt, "t"))
		a, err := Allocate(trainer, workersOf(p, make([]int64, rapid.IntRange(1, 20).Draw(rt, "workers"))...), 0)
		require.NoError(rt, err)
		require.Equal(rt, WorkersFor(trainer, p), a.Wanted)
	})
}

func TestAllocate(t *testing.T) {
	for _, c := range []struct {
		name    string
		trainer float64
		workers []Worker
		atMost  int
		drives  int
		wanted  int
		stall   time.Duration
		time    time.Duration // 0: not checked
		note    string        // part of it
	}{
		{"one drive is enough", 100, workersOf(100, 1000, 1000, 1000, 1000), 0, 1, 1, 0, 0, ""},
		{"a little more wants another", 101, workersOf(100, 1000, 1000, 1000, 1000), 0, 2, 2, 0, 0, ""},
		{"exactly all", 400, workersOf(100, 1000, 1000, 1000, 1000), 0, 4, 4, 0, 0, ""},
		{"not enough drives", 800, workersOf(100, 1000, 1000, 1000, 1000), 0, 4, 8, 5 * time.Second, 0, ""},
		{
			// T = 200 rows/s takes 10 s for 2,000 rows; drive a alone needs 18 s for its 1,800.
			"a stall of placement", 200, workersOf(100, 1800, 200), 0, 2, 2, 8 * time.Second, 0,
			"drive a holds 90% of the rows",
		},
		{
			// 60 + 100 sustain 150 whichever two run.
			"unequal drives, from the slowest", 150, []Worker{{"a", 100, 1}, {"b", 400, 1}, {"c", 60, 1}}, 0, 2, 2, 0, 0, "",
		},
		{"without T all run", 0, workersOf(10, 5, 5, 5), 0, 3, 3, 0, 0, ""},
		{
			// Four drives would sustain 400 rows/s: 10 s for 4,000 rows. Two at a time need 20 s: the stall that is foretold
			// is that of the drives that may run.
			"the options allow fewer than T asks for", 400, workersOf(100, 1000, 1000, 1000, 1000), 2, 2, 4,
			10 * time.Second, 0, "options allow 2 drives",
		},
		{"the options allow more than T asks for", 150, workersOf(100, 1000, 1000, 1000, 1000), 3, 2, 2, 0, 0, ""},
		{
			// Without T it is not known what the trainer waits for.
			"the options allow one, without T", 0, workersOf(100, 1000, 1000), 1, 1, 2, 0, 20 * time.Second, "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := Allocate(c.trainer, c.workers, c.atMost)
			require.NoError(t, err)
			assert.Equal(t, c.drives, a.Drives)
			assert.Equal(t, c.wanted, a.Wanted)
			assert.Equal(t, c.stall, a.ExpectedStall)
			if c.time != 0 {
				assert.Equal(t, c.time, a.Time)
			}
			assert.Contains(t, a.Note, c.note)
		})
	}
}

func TestAllocateRefuses(t *testing.T) {
	_, err := Allocate(1, nil, 0)
	require.ErrorIs(t, err, ErrNoWorker)
	for _, p := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		_, err := Allocate(1, workersOf(p, 1), 0)
		require.ErrorIs(t, err, ErrThroughput)
	}
}

// TestAllocateSaysWhatBinds: the note names the cause.
func TestAllocateSaysWhatBinds(t *testing.T) {
	for says, c := range map[string]struct {
		t      float64
		drives []Worker
	}{
		"2 of 3 drives sustain the trainer's 200 rows/s": {200, workersOf(100, 10, 10, 10)},
		"2 more would sustain it":                        {400, workersOf(100, 10, 10)},
		"drive b holds 75% of the rows":                  {200, workersOf(100, 10, 30)},
		"2 of 4 drives sustain the trainer's 110 rows/s": {110, []Worker{{"a", 60, 60}, {"b", 60, 60}, {"c", 60, 60},
			{"d", 1000, 10}}},
	} {
		got, err := Allocate(c.t, c.drives, 0)
		require.NoError(t, err)
		assert.Contains(t, got.Note, says)
	}
}

// TestAllocateProperties: a higher T never takes fewer drives, no more drives run than exist or than the limit
// allows, and a stall is the epoch's time less the trainer's time.
func TestAllocateProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var drives []Worker
		for i := range rapid.IntRange(1, 8).Draw(rt, "drives") {
			drives = append(drives, Worker{Name: string(rune('a' + i)), RowsPerSecond: rapid.Float64Range(1,
				1e6).Draw(rt, "p"), Rows: rapid.Int64Range(0, 1e9).Draw(rt, "rows")})
		}
		most := rapid.IntRange(0, 9).Draw(rt, "most")
		slow := rapid.Float64Range(0.1, 1e7).Draw(rt, "t")
		fast := slow * rapid.Float64Range(1, 10).Draw(rt, "times")
		a, err := Allocate(slow, drives, most)
		require.NoError(rt, err)
		b, err := Allocate(fast, drives, most)
		require.NoError(rt, err)
		require.LessOrEqual(rt, a.Drives, b.Drives)
		require.LessOrEqual(rt, a.Wanted, b.Wanted)
		require.GreaterOrEqual(rt, a.Drives, 1)
		require.LessOrEqual(rt, a.Drives, min(a.Wanted, len(drives)))
		if most > 0 {
			require.LessOrEqual(rt, a.Drives, most)
		}
		require.GreaterOrEqual(rt, a.ExpectedStall, time.Duration(0))
		require.InDelta(rt, a.Time.Seconds(), (a.TrainerTime + a.ExpectedStall).Seconds(), 1e-6)
		have := 0.0
		for _, d := range drives {
			have += d.RowsPerSecond
		}
		require.Equal(rt, a.Wanted > len(drives), have < slow)
	})
}

// TestScheduleStalls returns a split while later splits run: the schedule is stalled until the split runs again.
func TestScheduleStalls(t *testing.T) {
	s := NewSchedule(true, 2, []int{1, 1})
	for range 4 {
		s.Add(10, []int{0, 1})
	}
	assert.True(t, s.Stalled(), "nothing runs yet")
	for range 2 {
		_, _, ok := s.Start()
		require.True(t, ok)
		assert.False(t, s.Stalled())
	}
	s.End(0)
	assert.False(t, s.Stalled(), "split 1 runs")
	_, _, ok := s.Start()
	require.True(t, ok)
	s.Return(1)
	assert.True(t, s.Stalled(), "split 2 runs, and split 1 is pending")
	split, _, ok := s.Start()
	require.True(t, ok)
	require.Equal(t, 1, split)
	assert.False(t, s.Stalled())
	for split := 1; split <= 2; split++ {
		s.End(split)
	}
	assert.True(t, s.Stalled(), "split 3 is pending")
	_, _, ok = s.Start()
	require.True(t, ok)
	s.End(3)
	assert.False(t, s.Stalled(), "no split is left")

	free := NewSchedule(false, 1, []int{1})
	free.Add(10, []int{0})
	assert.False(t, free.Stalled(), "free order")
}
