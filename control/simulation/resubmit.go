package simulation

import (
	"errors"
	"time"

	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/sdk/dataset"
)

// resubmit ends a job and submits another job over the same data, which resumes from a token of the former. It goes on
// until the job has begun. A job that has ended meanwhile stays.
func (w *World) resubmit(j *job) {
	again := func() { w.after(time.Second, "resubmit "+j.id+" again", func() { w.resubmit(j) }) }
	if j.over {
		return
	}
	t := w.service()
	if t == nil || t.jobs[j.id] == nil {
		again()
		return
	}
	token, err := t.machine.Checkpoint(t.jobs[j.id].Job, nil)
	if early := (*machine.NotBegunError)(nil); errors.As(err, &early) {
		again()
		return
	}
	if err != nil {
		return // The job has ended.
	}
	if j.tokens {
		token = j.mergedToken()
	}
	t.journal.sync(t.machine.Ledger.Pending() > 0, func(err error) {
		switch {
		case j.over || j.cancelled:
		case err != nil:
			again()
		default:
			j.retire()
			w.cancel(j)
			w.submitAfter(j, token)
		}
	})
}

// retire ends the processes of a job whose user cancels it.
func (j *job) retire() {
	j.cancelled, j.over = true, true
	for _, c := range j.consumers {
		c.ended = true
		if l := c.process; l != nil {
			l.die()
		}
	}
}

// mergedToken merges the tokens that the trainers have kept. It is of the earliest of their epochs: the trainers have
// the rest of later epochs trained once more.
func (j *job) mergedToken() dataset.Token {
	var first uint64
	for i, c := range j.consumers {
		at := j.beginning()
		if c.token != nil {
			at = c.token
		}
		if i == 0 || at.Epoch < first {
			first = at.Epoch
		}
	}
	var merged []dataset.Range
	e := j.epoch(first)
	for rank, c := range j.consumers {
		for n := e.shares[rank].From; n < e.shares[rank].To; n++ {
			if c.saved.has(first, n) {
				merged = dataset.InsertNumber(merged, n)
			}
		}
	}
	return e.progress(merged).Token()
}

// cancel cancels a job, again and again until that is stored.
func (w *World) cancel(j *job) {
	again := func() { w.after(time.Second, "cancel "+j.id+" again", func() { w.cancel(j) }) }
	t := w.service()
	if t == nil || t.jobs[j.id] == nil {
		again()
		return
	}
	l := t.jobs[j.id]
	l.Cancel(t.member.clock())
	t.settle()
	answered := false
	t.store(l, func(err error) {
		answered = err == nil
		t.work(l)
	})
	w.after(6*time.Second, "the user looks for "+j.id, func() {
		if !answered {
			again()
		}
	})
}

// submitAfter submits a job that resumes from a token of a former job.
func (w *World) submitAfter(former *job, token dataset.Token) {
	j := &job{
		world: w, id: former.id + "-again", epochs: former.epochs, ranks: 1 + w.random.IntN(4), keepTail: former.keepTail,
		deterministic: former.deterministic, tokens: former.tokens, announces: former.announces, plan: former.plan,
		from: &token,
	}
	for _, g := range former.editions {
		same := *g
		same.epochs = nil
		j.planEpochs(&same)
	}
	for rank := range j.ranks {
		j.consumers = append(j.consumers, newConsumer(j, uint32(rank)))
	}
	if !j.tokens { // The mini-batches of the token were acknowledged, so the trainers of the former job have them.
		e := former.epoch(token.Epoch)
		has := e.progress(token.Acknowledged())
		for _, c := range former.consumers {
			if n, found := c.lacks(e, has); found {
				w.fail("the token of %s has mini-batch %d of epoch %d, which was never trained", former.id, n, e.number)
			}
		}
	}
	w.jobs = append(w.jobs, j)
	w.submit(j)
}
