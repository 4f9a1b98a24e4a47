package simulation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/trainmgr/remote/protocol"
)

// The times that one member gets to answer an attempt, as those of trainmgr/remote.
const (
	callTime   = 5 * time.Second
	attachTime = 30 * time.Second
)

var (
	// errAway reports that an attempt had no answer, or that a member could not carry it out now.
	errAway = errors.New("no answer")
	// errHungUp ends the calls of a delivery that has ended.
	errHungUp = errors.New("the caller waits no longer")
	// errUnreachable reports that no member answered within the patience of the launcher.
	errUnreachable = errors.New("the control plane does not answer")
)

// notLeaderError reports that a member does not lead.
type notLeaderError struct{ leader string } // leader is the member that leads, or empty if the member knows none.

// Error implements error.
func (e *notLeaderError) Error() string { return "this member does not lead" }

// call is a call of the control plane. It asks one member after another, as package protocol says.
type call struct {
	of       *launcher
	what     string
	limit    time.Duration // One member gets this time to answer.
	attempts protocol.Attempts
	begin    func() request // It makes the request of an attempt.
	done     func(answer any, err error)
	over     bool
	via      *connection // The connection of the attempt under way. Nil means that no attempt is under way.
}

// request carries out an attempt on a leader. It calls reply at most once.
type request func(t *term, via *connection, reply func(any, error))

// connection carries one attempt.
type connection struct {
	member   *member
	answered bool   // The caller has its answer, or waits no longer.
	hungUp   bool   // The member knows that the caller waits no longer.
	withdraw func() // It withdraws the call of the attempt on the leader. Nil means that the call does not wait.
	late     *event
}

// call begins a call. done gets the answer, or the error after which no member is asked any more.
func (l *launcher) call(what string, limit time.Duration, begin func() request, done func(any, error)) *call {
	c := &call{
		of: l, what: what, limit: limit, attempts: protocol.BeginAttempts(l.world().now), begin: begin, done: done,
	}
	l.calls = append(l.calls, c)
	c.attempt()
	return c
}

// attempt asks the member that the launcher takes for the leader.
func (c *call) attempt() {
	l := c.of
	if c.over || l.dead {
		return
	}
	w := l.world()
	m := w.memberOf(l.members.Preferred())
	via := &connection{member: m}
	c.via = via
	serve := c.begin()
	answer := func(a any, err error) {
		if !via.answered {
			via.answered = true
			via.late.never()
			c.take(m, a, err)
		}
	}
	back := func(a any, err error) {
		w.send("answer to "+l.name()+": "+c.what, func() bool { return m.cut }, func() { answer(a, err) })
	}
	served := false
	w.send(l.name()+": "+c.what, func() bool { return m.cut }, func() {
		if !m.alive {
			back(nil, errAway) // Its host refuses the connection.
			return
		}
		m.run(func() {
			// A connection carries a request once. Calls other than Attach may be repeated, which the members must bear.
			if served && c.what == attachCall {
				return
			}
			served = true
			if m.term == nil {
				back(nil, &notLeaderError{m.follows})
				return
			}
			serve(m.term, via, m.term.confirmed(back))
		})
	})
	via.late = l.later(c.limit, c.what+" has no answer", func() {
		c.hangUp()
		answer(nil, errAway)
	})
}

// attachCall is the name of an Attach call.
const attachCall = "attach"

// hangUp closes the connection of the attempt under way. The member hears of it later, or never.
func (c *call) hangUp() {
	via := c.via
	if via == nil || via.answered {
		return
	}
	m := via.member
	c.of.world().send(c.of.name()+" hangs up", m.away, func() {
		via.hungUp = true
		m.run(func() {
			if via.withdraw != nil {
				via.withdraw()
			}
		})
	})
}

// take takes the answer of a member.
func (c *call) take(m *member, a any, err error) {
	l := c.of
	if c.over || l.dead {
		return
	}
	if err == nil {
		l.members.NoteAnswer()
		c.end(a, nil)
		return
	}
	fault, leader := faultOf(err)
	retry := c.attempts.Failed(&l.members, m.name, fault, leader, l.world().now)
	switch {
	case retry.Never && fault == protocol.FinalAnswer:
		c.end(nil, withSentinel(err))
	case retry.Never:
		c.end(nil, fmt.Errorf("%w: %w", errUnreachable, err))
	case retry.Pause == 0: // The member named the leader.
		c.attempt()
	default:
		l.later(l.world().between(retry.Pause/2, retry.Pause), c.what+" again", c.attempt)
	}
}

// end ends the call. A nil call has ended.
func (c *call) end(a any, err error) {
	if c == nil || c.over {
		return
	}
	c.over = true
	if c.via != nil && !c.via.answered {
		c.hangUp()
		c.via.answered = true
		c.via.late.never()
	}
	c.of.calls = slices.DeleteFunc(c.of.calls, func(o *call) bool { return o == c })
	c.done(a, err)
}

// faultOf returns the reaction to an error of a member, and the leader that the member names.
func faultOf(err error) (fault protocol.CallFault, leader string) {
	var elsewhere *notLeaderError
	var early *machine.NotBegunError
	switch {
	case errors.As(err, &elsewhere):
		return protocol.NotLeader, elsewhere.leader
	case errors.Is(err, machine.ErrDeposed):
		return protocol.NotLeader, ""
	case errors.Is(err, errFull):
		return protocol.AskLater, ""
	case errors.Is(err, errAway), errors.As(err, &early):
		return protocol.AskOther, ""
	}
	return protocol.FinalAnswer, ""
}

// withSentinel adds the error of package protocol to a member's final answer.
func withSentinel(err error) error {
	var ended *machine.EndedError
	switch {
	case errors.Is(err, ledger.ErrSession):
		return fmt.Errorf("%w: %w", protocol.ErrFenced, err)
	case errors.Is(err, machine.ErrDone), errors.As(err, &ended):
		return fmt.Errorf("%w: %w", protocol.ErrEnded, err)
	}
	return err
}

// memberOf finds a member by its name.
func (w *World) memberOf(name string) *member {
	for _, m := range w.members {
		if m.name == name {
			return m
		}
	}
	panic("a call of no member") // This package has a fault.
}
