package simulation

import (
	"errors"
	"slices"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/sdk/dataset"
)

// train begins a step with the next mini-batch of the queue.
func (l *launcher) train() {
	if l.inStep != nil || l.saving || len(l.queue) == 0 {
		return
	}
	b := l.queue[0]
	l.inStep, l.queue = &b, l.queue[1:]
	w := l.world()
	l.later(w.between(time.Millisecond, 30*time.Millisecond), "a step", func() {
		l.inStep = nil
		l.step(b)
		l.train()
	})
}

// step trains with one mini-batch.
func (l *launcher) step(b minibatch) {
	if l.current() {
		l.of.train(b.epoch, b.number, b.content)
	} else {
		l.model.add(b.epoch, b.number)
	}
	l.acknowledge(b.number)
	l.steps++
	if l.of.job.tokens && l.steps%10 == 0 {
		l.saving = true
		l.save()
	}
}

// acknowledge acknowledges a mini-batch.
func (l *launcher) acknowledge(number uint64) {
	l.unacknowledged = dataset.InsertNumber(l.unacknowledged, number)
	l.sendAcknowledgements()
}

// sendAcknowledgements makes an Acknowledge call if none is under way.
func (l *launcher) sendAcknowledgements() {
	if len(l.acknowledging) > 0 || len(l.unacknowledged) == 0 || !l.attached {
		return
	}
	l.acknowledging, l.unacknowledged = l.unacknowledged, nil
	session, epoch, numbers := l.session, l.epoch.number, l.acknowledging
	l.call("acknowledge", 5*time.Second, func(t *term, reply func(any, error)) {
		t.acknowledge(l.of.job, session, epoch, numbers, reply)
	}, func(_ any, err error) {
		if l.session != session || !l.attached || l.epoch.number != epoch {
			return
		}
		l.acknowledging = nil
		if err == nil {
			l.of.answered[epoch] = dataset.UnionRanges(l.of.answered[epoch], numbers)
		}
		switch {
		case errors.Is(err, ledger.ErrSession) && !l.world().mutants.has(StaleSession):
			l.reattach()
			return
		case err != nil:
			l.unacknowledged = dataset.UnionRanges(l.unacknowledged, numbers)
			l.later(200*time.Millisecond, "acknowledge again", l.sendAcknowledgements)
			return
		}
		l.sendAcknowledgements()
	})
}

// acknowledge serves an Acknowledge call.
func (t *term) acknowledge(of *job, s ledger.Session, epoch uint64, numbers []dataset.Range, reply func(any, error)) {
	j := t.jobs[of.id]
	if j == nil {
		t.refuse(errNoJob, reply)
		return
	}
	over, err := t.machine.Acknowledge(j.Job, s, epoch, numbers, 0, t.member.clock())
	dirty := t.machine.Ledger.Pending() > 0
	t.settle()
	t.work(j)
	if err != nil {
		t.refuse(err, reply)
		return
	}
	if over || t.member.world.mutants.has(EarlyAnswer) {
		reply(nil, nil)
		return
	}
	t.journal.sync(dirty, func(err error) {
		if err != nil {
			err = errAway
		}
		reply(nil, err)
	})
}

// save saves a checkpoint. The trainer waits until every trained mini-batch is acknowledged and the token has come.
func (l *launcher) save() {
	if !l.attached {
		l.saving = false
		return
	}
	if len(l.unacknowledged)+len(l.acknowledging) > 0 {
		l.later(20*time.Millisecond, "save", l.save)
		return
	}
	session, e := l.session, l.epoch
	l.call("checkpoint", 5*time.Second, func(t *term, reply func(any, error)) { t.checkpoint(l.of.job, session, reply) },
		func(a any, err error) {
			l.saving = false
			if err == nil && l.session == session && l.epoch == e && l.current() {
				l.keep(a.(dataset.Token))
			}
			l.train()
			l.lease()
		})
}

// keep checks a token and keeps it, with the model.
func (l *launcher) keep(t dataset.Token) {
	w, c, share := l.world(), l.of, l.epoch.shares[l.of.rank]
	if l.epoch.number != t.Epoch || l.epoch.edition.digest != t.Job {
		w.fail("%s is in epoch %d and gets a token of epoch %d", l.name(), l.epoch.number, t.Epoch)
		return
	}
	missing := false
	for n := share.From; n < share.To; n++ {
		said := slices.ContainsFunc(t.Acknowledged(), func(r dataset.Range) bool { return r.From <= n && n < r.To })
		switch has := c.model.has(t.Epoch, n); {
		case said && !has:
			w.fail("%s was not trained with mini-batch %d of epoch %d, and its token has it", l.name(), n, t.Epoch)
			return
		case has && !said: // The leader changed after it got the acknowledgement.
			missing = true
			l.acknowledge(n)
		}
	}
	if missing {
		l.saving = true
		l.later(20*time.Millisecond, "save", l.save)
		return
	}
	if w.mutants.has(TokenOfFetched) {
		t.Mark, t.Ranges = 0, l.seen.ranges(t.Epoch)
	}
	c.saved, c.token = c.model.clone(), &t
}

// checkpoint serves a Checkpoint call.
func (t *term) checkpoint(of *job, s ledger.Session, reply func(any, error)) {
	j := t.jobs[of.id]
	if j == nil {
		t.refuse(errNoJob, reply)
		return
	}
	token, err := t.machine.Checkpoint(j.Job, &s)
	if err != nil {
		t.refuse(err, reply)
		return
	}
	t.journal.sync(t.machine.Ledger.Pending() > 0, func(err error) {
		if err != nil {
			err = errAway
		}
		reply(token, err)
	})
}

// endWhenSaid ends the launcher when everything that it trained is acknowledged.
func (l *launcher) endWhenSaid() {
	if len(l.unacknowledged)+len(l.acknowledging) > 0 {
		l.later(100*time.Millisecond, "end", l.endWhenSaid)
		return
	}
	if c := l.of; l.current() && c.job.tokens { // The last checkpoint is saved before the rank is through.
		c.saved, c.token = c.model.clone(), l.tokenNow()
	}
	if !l.announce {
		l.end()
		return
	}
	if !l.current() {
		l.of.completed = true
	}
	r := machine.Release{Session: l.session, Through: true}
	l.call("through", 5*time.Second, func(t *term, reply func(any, error)) { t.release(l.of.job, r, reply) },
		func(_ any, err error) {
			if errors.Is(err, errAway) || errors.Is(err, errNotLeader) {
				l.later(time.Second, "end", l.endWhenSaid)
				return
			}
			l.end()
		})
}

// end ends the launcher, because the job has nothing left for its rank.
func (l *launcher) end() {
	if l.ended {
		return
	}
	elsewhere := l.of.completed // A process that the schedule counts as dead has trained the rest.
	l.ended, l.of.completed = true, true
	if l.current() {
		l.of.ended = true
		if !elsewhere {
			l.of.checkWhole()
		}
		l.of.job.review()
	}
}
