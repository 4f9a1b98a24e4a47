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
			require.LessOrEqual(t, s.activeWorkers(0), limit)
			require.NotEmpty(t, running, "nothing runs and not all is done")
			i := rapid.IntRange(0, len(running)-1).Draw(t, "end")
			s.End(running[i].split)
			running = append(running[:i], running[i+1:]...)
		}
		require.Len(t, seen, n)
	})
}

// TestScheduleTakesAtLeastOne checks the lower bounds: a schedule without a limit or concurrency still runs.
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

// TestScheduleGroups runs two groups whose splits are sometimes returned, and whose workers are sometimes suspended.
func TestScheduleGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ordered := rapid.Bool().Draw(t, "ordered")
		s := NewSchedule(ordered, 1, []int{1, 2})
		require.Equal(t, 1, s.AddGroup(2, []int{2, 1})) // workers 2 and 3
		n := rapid.IntRange(1, 30).Draw(t, "splits")
		for range n {
			held := rapid.SliceOfNDistinct(rapid.IntRange(0, 1), 0, 2, rapid.ID).Draw(t, "holders")
			s.Add(int64(rapid.IntRange(1, 100).Draw(t, "rows")), append(held, 2, 3))
		}
		done := map[int]bool{}
		var running []started
		for steps := 0; !s.ended(); steps++ {
			group := rapid.IntRange(0, 1).Draw(t, "group")
			if steps == 10 {
				s.SetLimit(0, 0) // at least one
				var held []int
				for split := range s.splits {
					held = append(held, split)
				}
				require.Equal(t, 4, s.AddWorker(1, 0, held))
				s.SetLimit(1, 3)
			}
			switch worker := rapid.IntRange(0, 7).Draw(t, "suspend"); {
			case worker < 2 && steps < 100:
				s.Suspend(worker)
			case worker >= 2 && worker < 4:
				s.Resume(worker - 2)
			}
			if !s.CanServe(group) {
				group = 1
			}
			if split, worker, ok := s.StartIn(group); ok {
				require.Equal(t, group, min(worker/2, 1))
				require.False(t, s.workers[worker].suspended)
				require.False(t, done[split])
				running = append(running, started{split, worker})
			} else {
				require.NotEmpty(t, running, "nothing runs and nothing starts")
			}
			require.LessOrEqual(t, s.activeWorkers(0), 1)
			require.LessOrEqual(t, s.activeWorkers(1), 3)
			require.Equal(t, len(running), s.Running())
			if len(running) == 0 || rapid.Bool().Draw(t, "wait") && s.pending > 0 {
				continue
			}
			i := rapid.IntRange(0, len(running)-1).Draw(t, "end")
			if steps < 100 && rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
				s.Return(running[i].split)
			} else {
				s.End(running[i].split)
				done[running[i].split] = true
			}
			running = append(running[:i], running[i+1:]...)
		}
		require.Len(t, done, n)
		for w := range s.workers {
			require.Zero(t, s.workers[w].pendingRows)
			require.Zero(t, s.workers[w].running)
		}
	})
}
