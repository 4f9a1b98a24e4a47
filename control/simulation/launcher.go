package simulation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/control/presence"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/remote/protocol"
)

// launcher is a process that consumes a rank. The product's machine (package protocol) decides what the process says to
// the control plane and to nodes. The launcher carries that out over the simulated network, as trainmgr/remote does
// over HTTP, and trains.
type launcher struct {
	of     *consumer
	number int
	dead   bool // The process was killed, or has ended.

	members  protocol.Members
	machine  *protocol.Machine // A nil machine means that the process is not attached.
	tick     *event            // It ticks the machine. Nil means that the machine waits for no time.
	tickAt   time.Time
	calls    []*call       // The calls under way.
	waits    []func() bool // Each of them reports whether the state that it waits for is reached.
	settling bool

	epoch        *epoch
	owned        []dataset.Range
	acknowledged *dataset.Progress // The mini-batches of the epoch that the trainer has acknowledged.
	delivery     *delivery         // A nil delivery means that no epoch is being delivered.
	turning      *call             // The last call for the next epoch.
	training     bool              // The trainer makes a step.
	saving       bool              // The trainer waits for a checkpoint.
	steps        int
	quits        error // The process ends for this reason, after the step under way.
}

// errStopped ends a process that its operator stops.
var errStopped = errors.New("the process is stopped")

// launch starts a process of the rank.
func (c *consumer) launch(token *dataset.Token, resume bool) {
	w := c.job.world
	if c.ended {
		return
	}
	w.launched++
	var names []string
	for _, m := range w.members {
		names = append(names, m.name)
	}
	first := w.random.IntN(len(names))
	l := &launcher{
		of: c, number: w.launched,
		members: protocol.NewMembers(slices.Concat(names[first:], names[:first]), w.faults.patience, w.faults.patience),
	}
	c.process = l
	l.callAttach(token, resume, func(at machine.AttachAnswer) {
		a := l.enter(at)
		l.machine = protocol.New(protocol.Options{
			Pieces: 3, Acks: 5, AckDelay: 50 * time.Millisecond, Deadline: 3 * time.Second, Refused: 5 * time.Second,
		}, a)
		l.deliver()
	}, func(err error) { l.cannotAttach(token, resume, err) })
}

// crashLauncher kills a launcher, or has it end. Another process resumes later, from the checkpoint or behind the
// acknowledged mini-batches.
func (w *World) crashLauncher() {
	j := w.jobs[w.random.IntN(len(w.jobs))]
	c := j.consumers[w.random.IntN(len(j.consumers))]
	l := c.process
	if l == nil || c.ended {
		return
	}
	if w.random.IntN(4) == 0 {
		w.note("%s is stopped", l.name())
		l.quit(errStopped)
		return
	}
	l.crash()
}

// crash kills a launcher, or the schedule counts it as dead and it lives on.
func (l *launcher) crash() {
	w, c := l.world(), l.of
	zombie := c.job.tokens && w.chance(w.faults.zombies)
	w.note("%s dies (it lives on: %v)", l.name(), zombie)
	if zombie {
		c.zombies++
	} else {
		l.die()
	}
	c.startAgain(c.lose(), !c.job.tokens)
}

// die ends the process. Its host closes the connections.
func (l *launcher) die() {
	for _, c := range l.calls {
		c.hangUp()
	}
	l.dead = true
	w := l.world()
	for _, m := range w.members {
		w.send("connections of "+l.name()+" are closed", m.away, func() {
			m.run(func() {
				if t := m.term; t != nil {
					t.machine.ConnectionClosed(l.connection(), m.clock())
					t.settle()
				}
			})
		})
	}
}

// lose takes the model of the last checkpoint, because the process that had trained further is lost. It returns the
// checkpoint's token. Jobs without tokens keep their model.
func (c *consumer) lose() *dataset.Token {
	switch {
	case !c.job.tokens:
		return nil
	case c.saved == nil:
		c.model = trained{}
		return c.job.beginning()
	}
	c.model = c.saved.clone()
	return c.token
}

// startAgain starts another process of the rank.
func (c *consumer) startAgain(token *dataset.Token, resume bool) {
	c.process = nil
	w := c.job.world
	w.after(w.between(100*time.Millisecond, 20*time.Second), "a launcher of "+c.name()+" starts again",
		func() { c.launch(token, resume) })
}

func (l *launcher) world() *World             { return l.of.job.world }
func (l *launcher) name() string              { return fmt.Sprintf("launcher%d of %s", l.number, l.of.name()) }
func (l *launcher) current() bool             { return l.of.process == l }
func (l *launcher) connection() presence.Conn { return presence.Conn(l.number) }

// describe describes the state of a launcher.
func (l *launcher) describe() string {
	if l.machine == nil {
		return l.name() + " attaches"
	}
	words := fmt.Sprintf("%s is in epoch %d, has %d calls under way, waits for %q", l.name(), l.epoch.number,
		len(l.calls), l.machine.WaitingFor())
	if d := l.delivery; d != nil {
		words += fmt.Sprintf(", has %d pieces and %d mini-batches, %d have to come", len(d.running), len(d.queue),
			d.left())
	}
	return words
}

// later schedules do, which does not run if the launcher has ended.
func (l *launcher) later(d time.Duration, what string, do func()) *event {
	return l.world().after(d, l.name()+": "+what, func() {
		if !l.dead {
			do()
		}
	})
}

// tell reports an event to the machine, and carries out what follows.
func (l *launcher) tell(event func(m *protocol.Machine, now time.Time)) {
	event(l.machine, l.world().now)
	l.settle()
}

// await has the machine's states compared after every event, until reached returns true.
func (l *launcher) await(reached func() bool) {
	l.waits = append(l.waits, reached)
	l.settle()
}

// settle carries out the machine's effects until none follows, and continues what waits for a state of the machine.
func (l *launcher) settle() {
	if l.settling {
		return // The loop below takes what has come.
	}
	l.settling = true
	for again := true; again && !l.dead; {
		again = false
		for _, e := range l.machine.Ready() {
			l.carryOut(e)
			again = true
		}
		waits := l.waits
		l.waits = nil
		for _, reached := range waits {
			if !l.dead && !reached() {
				l.waits = append(l.waits, reached)
			} else {
				again = true
			}
		}
		again = l.startPieces() || again
	}
	l.settling = false
	l.setTick()
}

// setTick schedules the next tick of the machine.
func (l *launcher) setTick() {
	var next time.Time
	if !l.dead {
		next = l.machine.Deadline()
	}
	if next.Equal(l.tickAt) {
		return
	}
	if l.tick != nil {
		l.tick.never()
		l.tick = nil
	}
	if l.tickAt = next; next.IsZero() {
		return
	}
	l.tick = l.later(next.Sub(l.world().now), "tick", func() {
		l.tick, l.tickAt = nil, time.Time{}
		l.tell(func(m *protocol.Machine, now time.Time) { m.Tick(now) })
	})
}

// carryOut carries out an effect of the machine.
func (l *launcher) carryOut(effect protocol.Effect) {
	d := l.delivery
	switch e := effect.(type) {
	case protocol.CallLease:
		l.callLease(e.Purpose)
	case protocol.SendAcknowledgements:
		l.sendAcknowledgements(e)
	case protocol.Release:
		c := l.call("release", callTime, func() request {
			return func(t *term, _ *connection, reply func(any, error)) { t.release(l.of.job, e, l, reply) }
		}, func(_ any, err error) {
			l.tell(func(m *protocol.Machine, now time.Time) {
				if err != nil {
					m.ReleaseFailed(err, now)
				} else {
					m.Released(now)
				}
			})
		})
		if d != nil {
			d.returning = c
		}
	case protocol.Attach:
		l.turning = l.callAttach(nil, false, func(at machine.AttachAnswer) {
			a := l.enter(at)
			l.tell(func(m *protocol.Machine, now time.Time) { m.Attached(a, now) })
		}, func(err error) { l.tell(func(m *protocol.Machine, now time.Time) { m.AttachFailed(err, now) }) })
	case protocol.Granted:
		if of := l.world().nodeOf(e.Node).serves; of != nil && *of != (ledger.RankRef{Job: l.of.job.id, Rank: l.of.rank}) {
			l.world().fail("%s is granted a lease on %s, which serve another rank", l.name(), e.Node)
		}
		d.pieces[e.Lease] = &piece{Grant: e.Grant, next: e.From}
	case protocol.CancelPiece:
		d.cancelPiece(e)
	case protocol.AcknowledgeAgain:
		l.world().note("%s acknowledges epoch %d again", l.name(), e.Epoch)
	case protocol.RenewTicket, protocol.TrainerWaits, protocol.Wake:
	}
}

// callLease makes one lease call. It makes a new request for every attempt.
func (l *launcher) callLease(purpose protocol.Purpose) {
	c := l.call("lease", callTime, func() request {
		q := l.machine.LeaseRequest(purpose, l.progress(), l.world().now)
		r := wireRequest(l, q)
		return func(t *term, via *connection, reply func(any, error)) { t.lease(l.of.job, via, r, q.Wait, reply) }
	}, func(a any, err error) {
		l.tell(func(m *protocol.Machine, now time.Time) {
			if err != nil {
				m.LeaseFailed(purpose, err, now)
			} else {
				m.LeaseAnswered(purpose, a.(protocol.LeaseAnswer), l.progress(), now)
			}
		})
	})
	if purpose == protocol.AskEpoch {
		l.turning = c
	} else {
		l.delivery.lending[purpose] = c
	}
}

// sendAcknowledgements makes one call that acknowledges mini-batches.
func (l *launcher) sendAcknowledgements(e protocol.SendAcknowledgements) {
	l.call("acknowledge", callTime, func() request {
		return func(t *term, _ *connection, reply func(any, error)) { t.acknowledge(l.of.job, e, l, reply) }
	}, func(fence any, err error) {
		if epoch := l.of.job.epoch(e.Epoch); err == nil && l.current() && epoch != nil {
			l.of.answered[e.Epoch] = dataset.UnionRanges(l.of.answered[e.Epoch], e.Numbers)
		}
		l.tell(func(m *protocol.Machine, now time.Time) {
			if err != nil {
				m.AcknowledgeFailed(err, now)
			} else {
				m.Acknowledged(fence.(uint64), now)
			}
		})
	})
}

// callAttach makes one Attach call.
func (l *launcher) callAttach(
	token *dataset.Token, resume bool, attached func(machine.AttachAnswer), failed func(error),
) *call {
	r := machine.AttachRequest{
		Rank: l.of.rank, Token: token, Resumes: resume, AnnouncesEnd: l.of.job.announces, Connection: l.connection(),
	}
	r.Run, _ = lifecycle.RunOf(l.of.job.id) // The name is short.
	return l.call(attachCall, attachTime, func() request {
		return func(t *term, _ *connection, reply func(any, error)) {
			t.attach(l.of.job, r, t.member.clock().Add(attachWait), reply)
		}
	}, func(a any, err error) {
		if err != nil {
			failed(err)
		} else {
			attached(a.(machine.AttachAnswer))
		}
	})
}

// cannotAttach ends a process that could not attach.
func (l *launcher) cannotAttach(token *dataset.Token, resume bool, err error) {
	w, c := l.world(), l.of
	l.dead = true
	switch {
	case !l.current():
	case errors.Is(err, machine.ErrDone):
		c.ended = true
		// A job whose launchers announce no end does not wait for a rank that resumes from a checkpoint. A process that
		// the schedule counts as dead may have completed the rank.
		if !c.completed && (!c.job.tokens || l.of.job.announces) {
			c.checkWhole()
		}
		c.job.review()
	case errors.Is(err, dataset.ErrToken) && c.job.follow && token != nil && c.job.dropped(token.Epoch):
		c.ended = true // The job has dropped the edition of the checkpoint, so the run cannot resume.
		c.job.review()
	case errors.Is(err, errUnreachable):
		c.startAgain(token, resume)
	default:
		w.fail("%s cannot attach: %v", l.name(), err)
	}
}

// enter takes the epoch that an Attach call has answered.
func (l *launcher) enter(at machine.AttachAnswer) protocol.Attachment {
	e, w := l.of.job.epoch(at.Epoch), l.world()
	if e == nil {
		w.fail("%s is attached to epoch %d, which there is not", l.name(), at.Epoch)
		e = l.of.job.epoch(0)
		at.Token = dataset.Token{Job: e.edition.digest}
	}
	l.epoch, l.owned, l.acknowledged = e, at.Owned, e.progress(at.Token.Acknowledged())
	if l.current() {
		l.of.checkAttachment(l.name(), e, at)
	}
	return protocol.Attachment{Session: at.Session.Bytes(), Epoch: protocol.Epoch{
		Number: e.number, Plan: e.plan, Owned: at.Owned, Durable: e.progress(at.Token.Acknowledged()),
	}}
}

// nextEpoch goes on to the next epoch. A launcher of a job with follow ends if the schedule has no further partitions.
func (l *launcher) nextEpoch() {
	if l.of.job.follow && l.of.job.epoch(l.epoch.number+1) == nil {
		l.finish()
		return
	}
	l.tell(func(m *protocol.Machine, now time.Time) { m.BeginNextEpoch(now) })
	l.await(func() bool {
		inNext, afterLast, err := l.machine.NextEpoch()
		switch {
		case err != nil:
			l.quit(err)
			l.leave()
		case l.quits != nil:
			l.tell(func(m *protocol.Machine, now time.Time) { m.StopNextEpoch(now) })
			l.turning.end(nil, errHungUp)
			l.leave()
		case inNext:
			l.deliver()
		case afterLast:
			l.finish()
		default:
			return false
		}
		return true
	})
}

// quit ends the process for a reason. A trainer finishes the step under way.
func (l *launcher) quit(why error) {
	if l.quits != nil || l.dead || l.machine == nil {
		return
	}
	l.quits = why
	w := l.world()
	w.note("%s quits: %v", l.name(), why)
	replaced := errors.Is(why, protocol.ErrFenced) || errors.Is(why, protocol.ErrEnded)
	expected := errors.Is(why, errStopped) || errors.Is(why, errUnreachable) || replaced && l.of.zombies > 0
	if l.current() && !l.of.job.cancelled && !expected {
		w.fail("%s fails: %v", l.name(), why)
	}
	if l.delivery != nil {
		l.goOn()
	} else {
		l.settle() // The wait for the next epoch ends.
	}
}

// finish ends the rank after its last epoch. The trainer saves its last checkpoint before.
func (l *launcher) finish() {
	if !l.of.job.tokens {
		l.leave()
		return
	}
	l.save(func(err error) {
		if err != nil && l.of.job.announces { // A trainer without its last checkpoint must not say that it is through.
			l.die()
			if l.current() {
				l.of.startAgain(l.of.lose(), false)
			}
			return
		}
		if err != nil && l.current() { // The job may have ended, and the trainer knows that it has trained all.
			token := l.acknowledged.Token()
			l.of.saved, l.of.token = l.of.model.clone(), &token
		}
		l.leave()
	})
}

// leave makes the acknowledgements durable and reports the end of the rank.
func (l *launcher) leave() {
	through := l.machine.Finished() && l.quits == nil
	if through && !l.of.job.announces {
		l.end()
		return
	}
	if through && !l.current() {
		l.of.completed = true
	}
	l.tell(func(m *protocol.Machine, now time.Time) { m.Leave(now) })
	l.await(func() bool {
		left, _, _ := l.machine.Left()
		if left && l.quits == nil {
			l.end()
		} else if left {
			l.die()
			if l.current() {
				l.of.startAgain(l.of.lose(), !l.of.job.tokens)
			}
		}
		return left
	})
}

// end ends the launcher, because the job has nothing left for its rank.
func (l *launcher) end() {
	elsewhere := l.of.completed // A process that the schedule counts as dead has trained the rest.
	l.of.completed = true
	l.die()
	if l.current() {
		l.of.ended = true
		if !elsewhere {
			l.of.checkWhole()
		}
		l.of.job.review()
	}
}
