package allocation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type started struct{ split, worker int }

// ended reports whether every split has ended.
func (s *Schedule) ended() bool { return s.pending == 0 && s.running == 0 }

func startAll(s *Schedule) []started {
	var got []started
	for {
		split, worker, ok := s.Start()
		if !ok {
			return got
		}
		got = append(got, started{split, worker})
	}
}

func TestScheduleRunsAtMostLimitWorkersAndCoversAll(t *testing.T) {
	s := NewSchedule(false, 1, []int{2, 2})
	for range 3 {
		s.Add(10, []int{0})
	}
	s.Add(100, []int{1})
	assert.Equal(t, []started{{3, 1}}, startAll(s), "the worker with the most rows left runs first, alone")
	s.End(3)
	assert.Equal(t, []started{{0, 0}, {1, 0}}, startAll(s), "the next takes its place, with both its splits")
	s.End(1)
	assert.Equal(t, []started{{2, 0}}, startAll(s))
	s.End(0)
	s.End(2)
	assert.True(t, s.ended())
}

func TestScheduleInPlanOrderStartsWhatIsDue(t *testing.T) {
	s := NewSchedule(true, 1, []int{2, 2})
	s.Add(1, []int{0})
	s.Add(1, []int{1})
	s.Add(1, []int{0})
	assert.Equal(t, []started{{0, 0}}, startAll(s), "split 2 must not overtake split 1, whose worker has to wait")
	s.End(0)
	assert.Equal(t, []started{{1, 1}}, startAll(s))
}

func TestScheduleUsesAReplica(t *testing.T) {
	s := NewSchedule(true, 2, []int{1, 1})
	s.Add(1, []int{0, 1})
	s.Add(1, []int{0, 1})
	assert.Equal(t, []started{{0, 0}, {1, 1}}, startAll(s))
}

func TestScheduleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 5).Draw(t, "workers")
		limit := rapid.IntRange(1, workers).Draw(t, "limit")
		ordered := rapid.Bool().Draw(t, "ordered")
		concurrency := rapid.SliceOfN(rapid.IntRange(1, 3), workers, workers).Draw(t, "concurrency")
		s := NewSchedule(ordered, limit, concurrency)
		n := rapid.IntRange(0, 40).Draw(t, "splits")
		for range n {
			holders := rapid.SliceOfNDistinct(rapid.IntRange(0, workers-1), 1, workers, rapid.ID).Draw(t, "holders")
			s.Add(int64(rapid.IntRange(1, 100).Draw(t, "rows")), holders)
		}
		seen := map[int]bool{}
		var running []started
		lastStart := -1
		for !s.ended() {
			for _, st := range startAll(s) {
				require.False(t, seen[st.split], "split %d started twice", st.split)
				seen[st.split] = true
				if ordered {
					require.Equal(t, lastStart+1, st.split)
					lastStart = st.split
				}
				running = append(running, st)
				per := 0
				for _, r := range running {
					if r.worker == st.worker {
						per++
					}
				}
				require.LessOrEqual(t, per, concurrency[st.worker])
			}
			require.LessOrEqual(t, s.activeWorkers(), limit)
			require.NotEmpty(t, running, "nothing runs and not all is done")
			i := rapid.IntRange(0, len(running)-1).Draw(t, "end")
			s.End(running[i].split)
			running = append(running[:i], running[i+1:]...)
		}
		require.Len(t, seen, n)
	})
}

// TestScheduleTakesAtLeastOne holds the bounds from below: a schedule without a limit or concurrency still runs.
func TestScheduleTakesAtLeastOne(t *testing.T) {
	s := NewSchedule(false, 0, []int{0})
	s.Add(1, []int{0})
	s.Add(1, []int{0})
	assert.Equal(t, []started{{0, 0}}, startAll(s))
	assert.Equal(t, 1, s.Pending())
	s.End(0)
	assert.Equal(t, []started{{1, 0}}, startAll(s))
	s.End(1)
	assert.Zero(t, s.Pending())
}
