package simulation

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/trainmgr/remote/protocol"
)

// The times that an Attach call waits for a job that has not begun, and between two attempts meanwhile.
const (
	attachWait  = 3 * time.Second
	attachAgain = attachWait / 10
)

// find finds the job of a call, or refuses the call and returns nil.
func (t *term) find(of *job, reply func(any, error)) *leaderJob {
	j := t.jobs[of.id]
	if j == nil {
		reply(nil, fmt.Errorf("%w: job %s", ledger.ErrUnknown, of.id))
	}
	return j
}

// confirmed returns the reply of a leader that makes sure that its term goes on before it refuses a call for good: a
// later leader may know what this leader does not know.
func (t *term) confirmed(reply func(any, error)) func(any, error) {
	if t.member.world.mutant == UnconfirmedErrors {
		return reply
	}
	return func(a any, err error) {
		fault, _ := faultOf(err)
		if l, _ := a.(protocol.LeaseAnswer); err != nil && fault == protocol.FinalAnswer || l.UnknownSession {
			t.confirm(reply, func() { reply(a, err) })
			return
		}
		reply(a, err)
	}
}

// notStored returns the answer to a call whose records the store did not take.
func notStored(err error) error {
	if errors.Is(err, errFull) {
		return err
	}
	return errAway
}

// attach serves an Attach call. It waits for a job that has not begun.
func (t *term) attach(of *job, r machine.AttachRequest, until time.Time, reply func(any, error)) {
	j := t.find(of, reply)
	if j == nil {
		return
	}
	now := t.member.clock()
	a, err := t.machine.Attach(j.Job, r, now)
	t.settle()
	t.work(j)
	var early *machine.NotBegunError
	if errors.As(err, &early) && now.Before(until) {
		t.later(attachAgain, "a launcher waits for "+of.id, func() { t.attach(of, r, until, reply) })
		return
	}
	if err != nil {
		reply(nil, err)
		return
	}
	if t.member.world.mutant == EarlyAttach {
		reply(a, nil)
		return
	}
	t.store(j, func(err error) {
		if err != nil {
			reply(nil, notStored(err))
			return
		}
		t.journal.sync(true, func(err error) {
			if err != nil {
				reply(nil, notStored(err))
				return
			}
			reply(a, nil)
		})
	})
}

// lease serves a Lease call. The leader withdraws the call of a caller that has hung up.
func (t *term) lease(of *job, via *connection, r machine.LeaseRequest, wait time.Duration, reply func(any, error)) {
	j := t.find(of, reply)
	if j == nil {
		return
	}
	t.lastCall++
	call := t.lastCall
	answer := func(a *machine.LeaseAnswer, err error) {
		switch {
		case via.hungUp && err == nil:
			t.machine.Abandon(j.Job, call, r.Session, a, t.member.clock())
		case err != nil:
			reply(nil, err)
		default:
			t.sign(j.ID, r.Session, a.Grants)
			reply(wireAnswer(t.fence, a), nil)
		}
	}
	a, err := t.machine.Lease(j.Job, call, r, t.member.clock())
	if a != nil || err != nil {
		answer(a, err)
	} else {
		t.waiting[call] = answer
		via.withdraw = func() {
			if t.over || t.waiting[call] == nil {
				return
			}
			delete(t.waiting, call)
			t.machine.Abandon(j.Job, call, r.Session, nil, t.member.clock())
			t.settle()
		}
		t.later(wait, "the time of a call is over", func() {
			t.machine.Expire(call, t.member.clock())
			t.settle()
		})
	}
	t.settle()
	t.work(j)
}

// wireAnswer returns the answer to a Lease call as the launcher gets it.
func wireAnswer(fence uint64, a *machine.LeaseAnswer) protocol.LeaseAnswer {
	w := protocol.LeaseAnswer{
		Fence: fence, UnknownSession: a.UnknownSession, JobDone: a.JobDone, EpochDone: a.EpochDone, Adopt: a.Adopt,
		Waiting: a.Waiting, Revoked: a.Revoked,
	}
	for _, g := range a.Grants {
		w.Grants = append(w.Grants, protocol.Grant{
			Lease: g.ID, Epoch: g.Epoch, Split: g.Split, From: g.From, To: g.To, Node: g.Drive.Node, Drive: g.Drive.Name,
			URLs: []string{g.Drive.Node},
		})
	}
	return w
}

// wireRequest returns a Lease call as the leader gets it.
func wireRequest(l *launcher, q protocol.LeaseRequest) machine.LeaseRequest {
	r := machine.LeaseRequest{
		Epoch: q.Epoch, Want: q.Want, Held: q.Held, Fetched: q.Fetched, AnnouncesEnd: l.of.job.announces,
		Blocked: l.delivery != nil && l.delivery.blocked(), Connection: l.connection(),
	}
	r.Session = sessionOf(q.Session)
	for _, g := range q.Adopt {
		r.Adopt = append(r.Adopt, ledger.Lease{
			ID: g.Lease, Epoch: g.Epoch, Split: g.Split, From: g.From, To: g.To,
			Drive: ledger.DriveID{Node: g.Node, Name: g.Drive},
		})
	}
	return r
}

// sessionOf reads a session that a leader has made.
func sessionOf(wire []byte) ledger.Session {
	s, err := ledger.ParseSession(wire)
	if err != nil {
		panic(err) // This package has a fault.
	}
	return s
}

// acknowledge serves an Acknowledge call.
func (t *term) acknowledge(of *job, e protocol.SendAcknowledgements, l *launcher, reply func(any, error)) {
	j := t.find(of, reply)
	if j == nil {
		return
	}
	over, err := t.machine.Acknowledge(j.Job, sessionOf(e.Session), e.Epoch, e.Numbers, l.connection(), t.member.clock())
	dirty := t.machine.Ledger.Pending() > 0
	t.settle()
	t.work(j)
	if err != nil || over || t.member.world.mutant == EarlyAnswer {
		reply(t.fence, err)
		return
	}
	t.journal.sync(dirty, func(err error) {
		if err != nil {
			err = notStored(err)
		}
		reply(t.fence, err)
	})
}

// checkpoint serves a Checkpoint call.
func (t *term) checkpoint(of *job, session []byte, reply func(any, error)) {
	j := t.find(of, reply)
	if j == nil {
		return
	}
	s := sessionOf(session)
	token, err := t.machine.Checkpoint(j.Job, &s)
	if err != nil {
		reply(nil, err)
		return
	}
	t.journal.sync(t.machine.Ledger.Pending() > 0, func(err error) {
		if err != nil {
			err = notStored(err)
		}
		reply(token, err)
	})
}

// release serves a Release call.
func (t *term) release(of *job, e protocol.Release, l *launcher, reply func(any, error)) {
	j := t.find(of, reply)
	if j == nil {
		return
	}
	r := machine.Release{Session: sessionOf(e.Session), Leases: e.Leases, Connection: l.connection()}
	reason, why, _ := strings.Cut(e.Reason, ":")
	r.Why, r.Through, r.Leaves = why, reason == protocol.ReasonDone, reason == protocol.ReasonDetach
	switch reason {
	case "node":
		r.Reason = ledger.NodeFailed
	case "data":
		r.Reason = ledger.DataFailed
	}
	err := t.machine.Release(j.Job, r, t.member.clock())
	t.settle()
	t.work(j)
	if err != nil || !r.Through {
		reply(nil, err)
		return
	}
	t.store(j, func(err error) {
		t.work(j)
		if err != nil {
			err = notStored(err)
		}
		reply(nil, err)
	})
}
