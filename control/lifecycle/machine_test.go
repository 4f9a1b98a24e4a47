package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/internal/statediagram"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// TestTheTableIsInTheDocumentation, and exactly the phases that have ended lead nowhere.
func TestTheTableIsInTheDocumentation(t *testing.T) {
	statediagram.Picture[record.Phase, phaseEvent]{
		File: "../../docs/architecture.md", Name: "a job", Table: phases, Start: []record.Phase{record.Preparing},
	}.Document(t)
	for p := range phases {
		assert.Equal(t, phases.Final(p), p.Ended(), "%s", p)
		if p.Ended() {
			continue
		}
		for on, end := range map[phaseEvent]record.Phase{onFailed: record.Failed, onCancelled: record.Cancelled} {
			to, ok := phases.Next(p, on)
			assert.True(t, ok, "%s", p)
			assert.Equal(t, end, to)
		}
	}
}

// TestAnEventThatTheTableDoesNotHaveIsRefused and changes nothing.
func TestAnEventThatTheTableDoesNotHaveIsRefused(t *testing.T) {
	events := []phaseEvent{
		onPrepared, onCommitted, onNewLeader, onDelayed, onWaits, onGoesOn, onAllConsumed, onFailed, onCancelled,
		onAbandoned,
	}
	for from := range phases {
		for _, on := range events {
			m := New(Config{})
			j := m.Add(Terms{ID: "x", Name: "x", Ranks: 1, Epochs: 1}, record.State{Phase: record.Preparing})
			j.state.Phase = from
			to, known := phases.Next(from, on)
			assert.Equal(t, known, j.transition(on, "why"))
			effects := m.Ready()
			require.Len(t, effects, 1)
			if known {
				assert.Equal(t, Moved{"x", from, to, "why"}, effects[0])
				assert.Equal(t, to, j.Phase())
				continue
			}
			require.IsType(t, Refused{}, effects[0])
			assert.ErrorContains(t, effects[0].(Refused).Err, string(on))
			assert.Equal(t, from, j.Phase())
			assert.False(t, j.Unwritten())
		}
	}
}

// TestNamesOfRunsAreBounded, and stand for themselves.
func TestNamesOfRunsAreBounded(t *testing.T) {
	none, err := RunOf("")
	require.NoError(t, err)
	assert.Zero(t, none)
	longest, err := RunOf(string(make([]byte, maxRunName)))
	require.NoError(t, err)
	assert.NotZero(t, longest)
	_, err = RunOf(string(make([]byte, maxRunName+1)))
	assert.ErrorIs(t, err, ledger.ErrArgument)
}

// TestWhatRanksSaidIsRestored checks that announcements are restored from stored states of any length.
func TestWhatRanksSaidIsRestored(t *testing.T) {
	monday, err := RunOf("monday")
	require.NoError(t, err)
	m := New(Config{})
	st := record.State{Phase: record.Running, Stays: "01?", Runs: append(make([]byte, record.RunBytes), monday[:]...)}
	j := m.Add(Terms{ID: "x", Name: "x", Ranks: 4, Epochs: 1}, st)
	var got []string
	for _, r := range j.ranks {
		got = append(got, fmt.Sprint(r.announcesEnd, r.announcementAssumed, r.run == monday))
	}
	assert.Equal(t, []string{"false false false", "true false true", "true true false", "true true false"}, got)
	again := j.Storing(time.Time{})
	assert.Equal(t, "01??", again.Stays)
	assert.Equal(t, append(st.Runs, make([]byte, 2*record.RunBytes)...), again.Runs)
}

// TestAnAssumedAnnouncementIsWaitedForLessLong checks that a job stays for a shorter time for an assumed announcement
// than for an announcement that a launcher made to this leader.
func TestAnAssumedAnnouncementIsWaitedForLessLong(t *testing.T) {
	for _, c := range []struct {
		stays string
		most  time.Duration
	}{{"?", maxAssumedStay}, {"1", maxStay}} {
		m := New(Config{})
		st := record.State{Phase: record.Running, Editions: []record.Edition{{}}, Stays: c.stays}
		j := m.Add(Terms{ID: "x", Name: "x", Ranks: 1, Epochs: 1}, st)
		j.EpochDelivered(0, scriptStart)
		j.Confirmed(scriptStart.Add(c.most - 1))
		assert.Equal(t, record.Waiting, j.Phase())
		assert.False(t, j.Ending(scriptStart.Add(c.most-1)))
		assert.True(t, j.Ending(scriptStart.Add(c.most)))
		j.Review()
		assert.Equal(t, Confirm, j.Duty(scriptStart))
		j.Confirmed(scriptStart.Add(c.most))
		assert.Equal(t, record.Done, j.Phase())
	}
}

// TestADeliveredJobWaitsForItsFirstRank checks that a job that resumed from a token of all mini-batches is not done
// before a rank could attach, which between the submission and the attachment it was on a slow machine.
func TestADeliveredJobWaitsForItsFirstRank(t *testing.T) {
	for _, attaches := range []bool{true, false} {
		m := New(Config{})
		st := record.State{Phase: record.Running, Editions: []record.Edition{{}}, Stays: "0", Unattached: true}
		j := m.Add(Terms{ID: "x", Name: "x", Ranks: 1, Epochs: 1}, st)
		j.EpochDelivered(0, scriptStart)
		j.Confirmed(scriptStart.Add(maxAssumedStay - 1))
		assert.Equal(t, "waiting: every mini-batch is delivered, for a rank to attach", j.Words())
		end := scriptStart.Add(maxAssumedStay)
		if attaches {
			end = scriptStart.Add(time.Second)
			j.Attached(Attachment{}, end)
		}
		j.Review()
		j.Confirmed(end)
		assert.Equal(t, record.Done, j.Phase())
	}
}

// TestSmallChangesAreStoredOnceASecond, and a change of phase at once.
func TestSmallChangesAreStoredOnceASecond(t *testing.T) {
	m := New(Config{})
	st := record.State{Phase: record.Running, Editions: []record.Edition{{}}, Stays: "0"}
	j := m.Add(Terms{ID: "x", Name: "x", Ranks: 1, Epochs: 1}, st)
	j.Storing(scriptStart)
	j.DriveMeasured("n/d", 100)
	assert.Equal(t, Rest, j.Duty(scriptStart.Add(storeEvery-1)))
	assert.Equal(t, Store, j.Duty(scriptStart.Add(storeEvery)))
	j.Fail("why", scriptStart)
	assert.Equal(t, Store, j.Duty(scriptStart))
	j.Storing(scriptStart)
	assert.Equal(t, Retire, j.Duty(scriptStart))
	j.StoreFailed()
	assert.Equal(t, Store, j.Duty(scriptStart), "the end of a job is written as soon as it can be")
}

// TestTheOldestEndedJobsAreForgottenFirst, and those that are not stored not at all.
func TestTheOldestEndedJobsAreForgottenFirst(t *testing.T) {
	m := New(Config{})
	for i, id := range []string{"b", "a", "c", "d"} {
		j := m.Add(Terms{ID: id, Name: id, Ranks: 1, Epochs: 1}, Submission(record.Edition{}))
		if id != "d" {
			j.Cancel(scriptStart.Add(time.Duration(i) * time.Minute))
		}
		if id != "c" {
			j.Storing(scriptStart)
		}
	}
	ids := func(jobs []*Job) (ids []string) {
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		return ids
	}
	assert.Equal(t, []string{"b", "a"}, ids(m.Ended(0)))
	assert.Equal(t, []string{"b"}, ids(m.Ended(1)))
	assert.Empty(t, m.Ended(5))
	assert.Equal(t, 1, m.Active())
	m.Forget("b")
	assert.Nil(t, m.Find("b"))
	assert.NotNil(t, m.Find("a"))
}

// TestAJobIsFoundByItsName: of the jobs of one name, the running job comes first, then the job that ended last, however
// the jobs lie in the store.
func TestAJobIsFoundByItsName(t *testing.T) {
	m := New(Config{})
	add := func(id string, submitted, ended time.Duration) *Job {
		j := m.Add(Terms{ID: id, Name: "n", Submitted: scriptStart.Add(submitted), Ranks: 1, Epochs: 1},
			Submission(record.Edition{}))
		if ended > 0 {
			j.Cancel(scriptStart.Add(ended))
		}
		return j
	}
	add("second", 300*time.Millisecond, 900*time.Millisecond)
	add("first", 100*time.Millisecond, 200*time.Millisecond)
	assert.Equal(t, "second", m.Find("n").ID, "both ended in the same second")
	add("third", time.Second, 3*time.Second)
	assert.Equal(t, "third", m.Find("n").ID)
	add("long", 50*time.Millisecond, time.Minute)
	assert.Equal(t, "long", m.Find("n").ID)
	add("running", 2*time.Minute, 0)
	assert.Equal(t, "running", m.Find("n").ID)
	assert.Equal(t, "first", m.Find("first").ID)
}

// TestNothingBeginsBeforeItIsDurable: in whatever order events come, and whichever writes fail, an epoch begins only
// when the stored state has the job running with that epoch's edition, and a job that the stored state has ended
// never goes on.
func TestNothingBeginsBeforeItIsDurable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := scriptStart
		m := New(Config{AbandonAfter: time.Hour})
		stored := Submission(record.Edition{Digest: dataset.Digest{0}})
		terms := Terms{ID: "x", Name: "x", Ranks: 2, Epochs: 2, Follow: rapid.Bool().Draw(t, "follow"),
			FollowOnce: rapid.Bool().Draw(t, "once")}
		j := m.Add(terms, stored)
		write := func(s record.State) {
			s.Editions = slices.Clone(s.Editions)
			require.False(t, stored.Phase.Ended() && !s.Phase.Ended(), "a job that has ended is stored as %s", s.Phase)
			stored = s
		}
		sequence := uint64(0)
		events := map[string]func(*rapid.T){
			"prepared":       func(*rapid.T) { j.Prepared() },
			"prepare failed": func(*rapid.T) { j.PrepareFailed("why", now) },
			"delayed":        func(*rapid.T) { j.Delayed("why") },
			"measured":       func(*rapid.T) { j.Measured(nil, 0, allocation.Allocation{}) },
			"stored":         func(*rapid.T) { write(j.Storing(now)) },
			"store failed":   func(*rapid.T) { j.Storing(now); j.StoreFailed() },
			"committed":      func(*rapid.T) { write(j.StoringNext(now)); j.Committed() },
			"commit failed":  func(*rapid.T) { j.StoringNext(now); j.CommitFailed() },
			"commit lost":    func(*rapid.T) { write(j.StoringNext(now)); j.CommitFailed() },
			"delivered":      func(*rapid.T) { j.EpochDelivered(j.EndEpoch()-1, now) },
			"needed":         func(t *rapid.T) { j.EpochNeeded(rapid.Uint64Range(0, 9).Draw(t, "epoch")) },
			"confirmed":      func(*rapid.T) { j.Confirmed(now) },
			"found":          func(*rapid.T) { j.PartitionsFound(dataset.Digest{1}) },
			"missing":        func(*rapid.T) { j.PartitionsMissing("") },
			"edition stored": func(*rapid.T) { j.EditionStored(1) },
			"dropped":        func(*rapid.T) { j.EditionDropped() },
			"went back":      func(*rapid.T) { j.WentBack(0, 0, 1) },
			"review":         func(*rapid.T) { j.Review() },
			"through":        func(t *rapid.T) { j.Through(uint32(rapid.IntRange(0, 1).Draw(t, "rank"))) },
			"announced": func(t *rapid.T) {
				j.Announces(uint32(rapid.IntRange(0, 1).Draw(t, "rank")), rapid.Bool().Draw(t, "end"))
			},
			"called": func(t *rapid.T) { j.Called(uint32(rapid.IntRange(0, 1).Draw(t, "rank")), 1, now) },
			"tick":   func(*rapid.T) { now = now.Add(20 * time.Minute); m.Tick(now) },
			"leader": func(*rapid.T) { m = New(m.config); j = m.Add(terms, stored) },
			"cancel": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "really") == 0 {
					j.Cancel(now)
				}
			},
			"attached": func(t *rapid.T) {
				sequence++
				s := ledger.Session{Rank: uint32(rapid.IntRange(0, 1).Draw(t, "rank")), Generation: sequence}
				j.Attached(Attachment{Session: s, AnnouncesEnd: rapid.Bool().Draw(t, "announces")}, now)
			},
		}
		check := func(*rapid.T) {
			for _, e := range m.Ready() {
				switch e := e.(type) {
				case BeginEpoch:
					require.True(t, stored.Phase.Begun() || stored.Phase.Ended(),
						"it begins epoch %d and is stored as %s", e.Epoch, stored.Phase)
					require.True(t, slices.ContainsFunc(stored.Editions, func(g record.Edition) bool {
						epochs := terms.Epochs
						if terms.FollowOnce && g.Number > 0 {
							epochs = 1
						}
						return e.Epoch >= g.First && e.Epoch < g.First+epochs
					}), "it begins epoch %d, of no edition that is stored", e.Epoch)
				case Refused:
					require.NoError(t, e.Err)
				case EndJob:
					j.Conclude(Conclusion{})
				}
			}
			require.LessOrEqual(t, len(j.Editions()), keptEditions)
			require.Equal(t, j.Phase().Ended(), m.Running("x") == nil)
			require.NotEqual(t, "", j.Duty(now).String())
		}
		events[""] = check
		t.Repeat(events)
	})
}

// TestRowsOfEarlierEpochs counts the rows of the epochs that all ranks have left. They outlive the leader, and an epoch
// that begins again counts once.
func TestRowsOfEarlierEpochs(t *testing.T) {
	terms := Terms{ID: "x", Name: "x", Ranks: 1, Epochs: 10, FirstEpoch: 2}
	j := New(Config{}).Add(terms, record.State{Phase: record.Running})
	assert.Zero(t, j.RowsBefore(9), "no epoch has begun")
	for _, e := range []struct {
		epoch uint64
		rows  int64
	}{{2, 100}, {3, 300}, {4, 300}, {3, 300}, {5, 200}} {
		j.EpochBegun(e.epoch, e.rows)
	}
	assert.True(t, j.Unwritten())
	j = New(Config{}).Add(terms, j.Storing(time.Time{}))
	for epoch, want := range []int64{0, 0, 0, 100, 400, 700, 900} {
		assert.Equal(t, want, j.RowsBefore(uint64(epoch)), epoch)
	}

	j = New(Config{}).Add(terms, record.State{Phase: record.Running})
	j.EpochBegun(4, 50)
	assert.EqualValues(t, 150, j.RowsBefore(5), "the leader died before the rows of the first epochs were stored")
}
