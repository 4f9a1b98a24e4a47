package allocation

import (
	"maps"
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

// TestScheduleStarts follows schedules: splits end, and what may run then starts.
func TestScheduleStarts(t *testing.T) {
	type split struct {
		rows    int64
		holders []int
	}
	type step struct {
		ends   []int // splits, one after the other
		starts []started
		why    string
	}
	for _, c := range []struct {
		name    string
		inOrder bool
		limit   int
		workers []int // splits that each may run at once
		splits  []split
		steps   []step
	}{
		{
			"at most the limit of workers, and all splits", false, 1, []int{2, 2},
			[]split{{10, []int{0}}, {10, []int{0}}, {10, []int{0}}, {100, []int{1}}},
			[]step{
				{nil, []started{{3, 1}}, "the worker with the most rows left runs first, alone"},
				{[]int{3}, []started{{0, 0}, {1, 0}}, "the next worker takes its place, with both its splits"},
				{[]int{1}, []started{{2, 0}}, ""},
				{[]int{0, 2}, nil, ""},
			},
		},
		{
			"in plan order, what is due", true, 1, []int{2, 2},
			[]split{{1, []int{0}}, {1, []int{1}}, {1, []int{0}}},
			[]step{
				{nil, []started{{0, 0}}, "split 2 must not overtake split 1, whose worker has to wait"},
				{[]int{0}, []started{{1, 1}}, ""},
			},
		},
		{
			"a replica", true, 2, []int{1, 1}, []split{{1, []int{0, 1}}, {1, []int{0, 1}}},
			[]step{{nil, []started{{0, 0}, {1, 1}}, ""}},
		},
		{
			"without a limit or concurrency, one split", false, 0, []int{0}, []split{{1, []int{0}}, {1, []int{0}}},
			[]step{
				{nil, []started{{0, 0}}, ""},
				{[]int{0}, []started{{1, 0}}, ""},
				{[]int{1}, nil, ""},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewSchedule(c.inOrder, c.limit, c.workers)
			for _, x := range c.splits {
				s.Add(x.rows, x.holders)
			}
			pending := len(c.splits)
			for _, step := range c.steps {
				for _, n := range step.ends {
					s.End(n)
				}
				require.Equal(t, step.starts, startAll(s), step.why)
				pending -= len(step.starts)
				assert.Equal(t, pending, s.Pending())
			}
			last := c.steps[len(c.steps)-1]
			assert.Equal(t, last.starts == nil, s.ended(), "a script that goes on to its end has no split left")
		})
	}
}

// runsOf counts the runs of n splits of which some have started.
func runsOf(n int, started map[int]bool) (runs int) {
	for split := range n {
		if started[split] && (split == 0 || !started[split-1]) {
			runs++
		}
	}
	return runs
}

// TestScheduleLimitsRuns has a worker 1 that ends no split. Every other split is its own, or the second half of all.
func TestScheduleLimitsRuns(t *testing.T) {
	const splits = 12
	odd, last := func(n int) bool { return n%2 == 1 }, func(n int) bool { return n >= 6 }
	for name, c := range map[string]struct {
		runs   int
		others func(split int) bool // those of worker 1
		want   []int                // splits that worker 0 makes
		idle   bool                 // Worker 1 waits at first.
	}{
		"no limit":               {0, odd, []int{0, 2, 4, 6, 8, 10}, false},
		"one run":                {1, odd, []int{0, 2}, false},
		"two runs":               {2, odd, []int{0, 2, 4}, false},
		"three runs":             {3, odd, []int{0, 2, 4, 6}, false},
		"each goes on, two runs": {2, last, []int{0, 1, 2, 3, 4, 5}, false},
		"each goes on, one run":  {1, last, []int{0, 1, 2, 3, 4, 5}, true},
	} {
		s := NewSchedule(false, 2, []int{1, 1})
		s.LimitRuns(c.runs)
		for split := range splits {
			worker := 0
			if c.others(split) {
				worker = 1
			}
			s.Add(10, []int{worker})
		}
		var made []int
		for round := 0; ; round++ {
			started := startAll(s)
			if len(started) == 0 {
				break
			}
			if round == 0 {
				require.Equal(t, c.idle, len(started) == 1, name)
			}
			for _, x := range started {
				if x.worker == 0 {
					made = append(made, x.split)
					s.End(x.split)
				}
			}
		}
		require.Equal(t, c.want, made, name)
	}
}

func TestScheduleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 5).Draw(t, "workers")
		limit := rapid.IntRange(1, workers).Draw(t, "limit")
		ordered := rapid.Bool().Draw(t, "ordered")
		concurrency := rapid.SliceOfN(rapid.IntRange(1, 3), workers, workers).Draw(t, "concurrency")
		s := NewSchedule(ordered, limit, concurrency)
		runs := 0
		if !ordered {
			runs = rapid.IntRange(0, 4).Draw(t, "runs")
			s.LimitRuns(runs)
		}
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
			if runs > 0 {
				require.LessOrEqual(t, runsOf(n, seen), runs+1, "the first split begins a run of its own")
			}
			require.LessOrEqual(t, s.Active(0), limit)
			require.NotEmpty(t, running, "nothing runs and not all is done")
			i := rapid.IntRange(0, len(running)-1).Draw(t, "end")
			s.End(running[i].split)
			running = append(running[:i], running[i+1:]...)
		}
		require.Len(t, seen, n)
	})
}

// TestScheduleGroups runs two groups whose splits are sometimes returned, and whose workers are sometimes suspended.
func TestScheduleGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ordered := rapid.Bool().Draw(t, "ordered")
		s := NewSchedule(ordered, 1, []int{1, 2})
		if !ordered {
			s.LimitRuns(rapid.IntRange(0, 4).Draw(t, "runs"))
		}
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
			split, worker, ok := s.StartIn(group)
			if !ok && s.Stalled() {
				group = 1
				split, worker, ok = s.StartIn(group)
			}
			if ok {
				require.Equal(t, group, min(worker/2, 1))
				require.False(t, s.workers[worker].suspended)
				require.False(t, done[split])
				running = append(running, started{split, worker})
			} else {
				require.NotEmpty(t, running, "nothing runs and nothing starts")
			}
			require.LessOrEqual(t, s.Active(0), 1)
			require.LessOrEqual(t, s.Active(1), 3)
			require.Equal(t, len(running), s.Running())
			hasStarted := maps.Clone(done)
			for _, r := range running {
				hasStarted[r.split] = true
			}
			require.Equal(t, runsOf(n, hasStarted), s.runs)
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

// TestALowerLimit: workers with the most rows left go on, and the others end what they run; then they wait for their
// turn. A higher limit lets them go on.
func TestALowerLimit(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		s := NewSchedule(inOrder, 3, []int{2, 2, 2})
		for split := range 30 {
			s.Add(int64(10+split%3), []int{split % 3})
		}
		require.Len(t, startAll(s), 6)
		require.Equal(t, 3, s.Active(0))
		require.Equal(t, 3, s.Holders(0))
		s.SetLimit(0, 1)
		runningOn := func(w int) (splits []int) {
			for i := range s.splits {
				if s.splits[i].state == splitRunning && s.splits[i].worker == w {
					splits = append(splits, i)
				}
			}
			return splits
		}
		for w := range 2 { // worker 2 has the largest splits
			splits := runningOn(w)
			s.End(splits[0])
			for _, x := range startAll(s) {
				require.NotEqual(t, w, x.worker, "it ends its splits")
			}
			require.False(t, s.Idle(w), "it runs a split")
			s.End(splits[1])
			require.True(t, s.Idle(w), "worker 2 runs, and no other may")
		}
		require.Equal(t, 1, s.Active(0))
		if inOrder { // what is due is held by a worker that waits: it runs when worker 2 has ended
			for _, split := range runningOn(2) {
				s.End(split)
			}
		}
		s.SetLimit(0, 3)
		for _, x := range startAll(s) {
			require.True(t, s.splits[x.split].state == splitRunning)
		}
		for !s.ended() {
			for w := range 3 {
				for _, split := range runningOn(w) {
					s.End(split)
				}
			}
			startAll(s)
		}
		for w := range 3 {
			require.True(t, s.Idle(w), "no split is left")
		}
		require.Zero(t, s.Holders(0))
	}
}

// TestALimitThatGoesDownAndUp: a worker that was to end its splits goes on if the limit allows it again.
func TestALimitThatGoesDownAndUp(t *testing.T) {
	s := NewSchedule(false, 2, []int{1, 2})
	for range 4 {
		s.Add(1, []int{0})
		s.Add(1, []int{1})
	}
	require.Len(t, startAll(s), 3)
	s.SetLimit(0, 1)
	s.SetLimit(0, 2)
	for i := range s.splits {
		if s.splits[i].state == splitRunning && s.splits[i].worker == 1 {
			s.End(i)
			break
		}
	}
	require.Len(t, startAll(s), 1)
}
