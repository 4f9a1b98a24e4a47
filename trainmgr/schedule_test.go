package trainmgr

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type started struct{ split, drive int }

func startAll(s *schedule) []started {
	var got []started
	for {
		split, drive, ok := s.start()
		if !ok {
			return got
		}
		got = append(got, started{split, drive})
	}
}

func TestScheduleRunsAtMostWidthDrivesAndCoversAll(t *testing.T) {
	s := newSchedule(false, 1, []int{2, 2})
	for range 3 {
		s.add(10, []int{0})
	}
	s.add(100, []int{1})
	assert.Equal(t, []started{{3, 1}}, startAll(s), "the drive with the most rows left runs first, alone")
	s.end(3)
	assert.Equal(t, []started{{0, 0}, {1, 0}}, startAll(s), "the next takes its place, with both its streams")
	s.end(1)
	assert.Equal(t, []started{{2, 0}}, startAll(s))
	s.end(0)
	s.end(2)
	assert.True(t, s.done())
}

func TestScheduleInPlanOrderStartsWhatIsDue(t *testing.T) {
	s := newSchedule(true, 1, []int{2, 2})
	s.add(1, []int{0})
	s.add(1, []int{1})
	s.add(1, []int{0})
	assert.Equal(t, []started{{0, 0}}, startAll(s), "split 2 must not overtake split 1, whose drive has to wait")
	s.end(0)
	assert.Equal(t, []started{{1, 1}}, startAll(s))
}

func TestScheduleUsesAReplica(t *testing.T) {
	s := newSchedule(true, 2, []int{1, 1})
	s.add(1, []int{0, 1})
	s.add(1, []int{0, 1})
	assert.Equal(t, []started{{0, 0}, {1, 1}}, startAll(s))
}

func TestScheduleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drives := rapid.IntRange(1, 5).Draw(t, "drives")
		width := rapid.IntRange(1, drives).Draw(t, "width")
		ordered := rapid.Bool().Draw(t, "ordered")
		streams := rapid.SliceOfN(rapid.IntRange(1, 3), drives, drives).Draw(t, "streams")
		s := newSchedule(ordered, width, streams)
		n := rapid.IntRange(0, 40).Draw(t, "splits")
		for range n {
			holders := rapid.SliceOfNDistinct(rapid.IntRange(0, drives-1), 1, drives, rapid.ID).Draw(t, "holders")
			s.add(int64(rapid.IntRange(1, 100).Draw(t, "rows")), holders)
		}
		seen := map[int]bool{}
		var running []started
		lastStart := -1
		for !s.done() {
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
					if r.drive == st.drive {
						per++
					}
				}
				require.LessOrEqual(t, per, streams[st.drive])
			}
			require.LessOrEqual(t, s.active(), width)
			require.NotEmpty(t, running, "nothing runs and not all is done")
			i := rapid.IntRange(0, len(running)-1).Draw(t, "end")
			s.end(running[i].split)
			running = append(running[:i], running[i+1:]...)
		}
		require.Len(t, seen, n)
	})
}
