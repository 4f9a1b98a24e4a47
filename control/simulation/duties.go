package simulation

import (
	"time"

	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// journal is a model of store.Journal. It commits the ledger's records in rounds.
type journal struct {
	term   *term
	busy   bool
	kept   []op          // The records of a write that failed. The next round writes them first.
	next   []func(error) // The next round answers these calls.
	joined bool
}

// kick starts a round.
func (j *journal) kick() {
	j.joined = true
	if !j.busy {
		j.round()
	}
}

// sync calls done when all changes of the ledger are durable.
func (j *journal) sync(dirty bool, done func(error)) {
	if !dirty && !j.busy && !j.joined && len(j.kept) == 0 {
		done(nil)
		return
	}
	j.next = append(j.next, done)
	j.kick()
}

// round writes all changes of the ledger, and answers the calls that wait for them.
func (j *journal) round() {
	calls := j.next
	j.next, j.joined, j.busy = nil, false, true
	j.write(func(err error) {
		j.busy = false
		for _, done := range calls {
			done(err)
		}
		if !j.term.over && (j.joined || err == nil && len(j.next) > 0) {
			j.round()
		}
	})
}

func (j *journal) write(done func(error)) {
	w := j.term.member.world
	if len(j.kept) == 0 {
		for _, r := range j.term.machine.Ledger.Flush(8) {
			j.kept = append(j.kept, op{key: record.Key(r.Job, r.Key()), data: r.Data})
		}
		if w.mutant == OrderOfRecords && len(j.kept) > 1 {
			j.kept = j.kept[1:]
		}
	}
	if len(j.kept) == 0 {
		done(nil)
		return
	}
	j.term.commit("acknowledgements", j.kept, func(err error) {
		if err == nil {
			j.kept = nil
		}
		if err != nil {
			done(err)
			return
		}
		j.write(done)
	})
}

// work carries out the next duty of a job.
func (t *term) work(j *leaderJob) {
	if j == nil || j.Job == nil || j.busy || t.over {
		return
	}
	w, duty := t.member.world, j.Duty(t.member.clock())
	if duty == lifecycle.Rest || duty == lifecycle.Retire {
		return
	}
	j.busy = true
	done := func(err error) {
		j.busy = false
		t.settle()
		if err == nil {
			t.work(j)
		} else if w.mutant != DutiesStop {
			t.later(time.Second, "try again for "+j.ID, func() { t.work(j) })
		} else {
			j.busy = true
		}
	}
	switch duty {
	case lifecycle.Prepare:
		t.prepareJob(j, done)
	case lifecycle.Measure:
		t.later(w.between(10*time.Millisecond, time.Second), "P of "+j.ID, func() {
			j.Measured(map[string]float64{"node0/d": 1000}, 0, allocation.Allocation{Drives: 5})
			done(nil)
		})
	case lifecycle.Withdraw:
		j.Withdrawn()
		done(nil)
	case lifecycle.Store:
		t.store(j, done)
	case lifecycle.Commit:
		t.commitState(j, done)
	case lifecycle.Confirm:
		t.journal.sync(true, func(err error) {
			if err == nil {
				j.Confirmed(t.member.clock())
			}
			done(err)
		})
	case lifecycle.StoreEdition:
		t.commit("an edition", []op{{key: record.DataKey(j.ID, j.Preparing(), 0), data: []byte("data")}}, func(err error) {
			if err != nil {
				j.EditionDropped()
			} else {
				j.EditionStored(1)
			}
			done(err)
		})
	}
}

// inTurn carries out writes of a job's state one after the other.
func (j *leaderJob) inTurn(write func(next func())) {
	j.writes = append(j.writes, write)
	if !j.writing {
		j.nextWrite()
	}
}

func (j *leaderJob) nextWrite() {
	if j.writing = len(j.writes) > 0; j.writing {
		write := j.writes[0]
		j.writes = j.writes[1:]
		write(j.nextWrite)
	}
}

// store stores a job's state if the stored state differs.
func (t *term) store(j *leaderJob, done func(error)) {
	j.inTurn(func(next func()) {
		t.storeNow(j, func(err error) {
			next()
			done(err)
		})
	})
}

func (t *term) storeNow(j *leaderJob, done func(error)) {
	if !j.Unwritten() {
		done(nil)
		return
	}
	raw := encode(j.Storing(t.member.clock()))
	ops := []op{{key: record.Key(j.ID, "state"), data: raw}}
	if t.member.world.mutant == OldState {
		t.later(2*time.Second, "an old state", func() { t.commit("an old state", ops, func(error) {}) })
	}
	if j.Phase().Ended() {
		ops = append(ops, op{key: record.Key(j.ID, "e"), prefix: true}, op{key: record.Key(j.ID, "ranks")},
			op{key: record.Key(j.ID, "data/"), prefix: true})
	}
	t.commit("a state", ops, func(err error) {
		if err != nil {
			j.StoreFailed()
		}
		done(err)
	})
}

// commitState stores the next state of a job. The job enters the state after the write.
func (t *term) commitState(j *leaderJob, done func(error)) {
	j.inTurn(func(next func()) {
		t.commitNow(j, func(err error) {
			next()
			done(err)
		})
	})
}

func (t *term) commitNow(j *leaderJob, done func(error)) {
	w := t.member.world
	raw := encode(j.StoringNext(t.member.clock()))
	if w.mutant == EarlyEdition && j.Phase() != record.Measuring {
		j.Committed()
		t.settle()
		t.later(4*time.Second, "a late state", func() {
			t.commit("a late state", []op{{key: record.Key(j.ID, "state"), data: raw}}, done)
		})
		return
	}
	t.commit("a state", []op{{key: record.Key(j.ID, "state"), data: raw}}, func(err error) {
		if err != nil {
			j.CommitFailed()
		} else {
			j.Committed()
		}
		done(err)
	})
}
