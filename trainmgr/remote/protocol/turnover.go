package protocol

import (
	"time"

	"github.com/millrace/millrace/internal/transition"
	"github.com/millrace/millrace/internal/wait"
)

// Pauses between two attempts. Each pause is twice the previous pause.
const (
	FirstPause = 50 * time.Millisecond
	LastPause  = 2 * time.Second
)

// step is how far a rank is on its way to the next epoch.
type step string

const (
	settled   step = "in its epoch"
	flushing  step = "acknowledgements become durable"
	asking    step = "asks for a lease of the next epoch"
	resting   step = "the next epoch has not begun"
	draining  step = "an acknowledgement is under way"
	attaching step = "attaches again"
	finished  step = "after the last epoch"
	stopped   step = "failed"
)

// stepEvent is what leads from one step to another.
type stepEvent string

const (
	onWanted   stepEvent = "the trainer wants the next epoch"
	onDurable  stepEvent = "every acknowledgement is durable"
	onNotYet   stepEvent = "neither a grant nor an end"
	onRested   stepEvent = "a pause"
	onBegins   stepEvent = "a grant, or the epoch is done"
	onSilent   stepEvent = "no acknowledgement is under way"
	onOld      stepEvent = "the session is of the same epoch"
	onNew      stepEvent = "the session is of the next epoch"
	onJobDone  stepEvent = "the job is done"
	onGivenUp  stepEvent = "the trainer waits no longer"
	onFailedAt stepEvent = "a call fails"
)

// steps is the way of a rank to its next epoch.
var steps = transition.Table[step, stepEvent]{
	settled:   {onWanted: flushing},
	flushing:  {onDurable: asking, onFailedAt: stopped, onGivenUp: settled},
	asking:    {onNotYet: resting, onBegins: draining, onJobDone: finished, onFailedAt: stopped, onGivenUp: settled},
	resting:   {onRested: asking, onGivenUp: settled},
	draining:  {onSilent: attaching, onGivenUp: settled},
	attaching: {onNew: settled, onOld: resting, onFailedAt: stopped, onGivenUp: settled},
	finished:  {onWanted: flushing},
	stopped:   {onWanted: flushing},
}

// turnover is the way of a rank to its next epoch. The control plane begins the next epoch when a rank asks for a lease
// of it. The answer to Attach contains the numbers of the rank. Its new session gives the grants of that call back.
type turnover struct {
	step   step
	ticket uint64 // counts the acknowledgements that are to become durable
	next   uint64 // epoch
	pauses wait.Backoff
	rest   time.Time // when the pause ends; zero: none
	err    error
}

func (t *turnover) attaching() bool { return t.step == draining || t.step == attaching }

// turn takes the next step, if the table has one, and reports whether it does.
func (m *Machine) turn(on stepEvent) bool {
	next, ok := steps.Next(m.turnover.step, on)
	if ok {
		m.turnover.step = next
		m.through = m.through || next == finished
	}
	if next == settled || next == finished || next == stopped {
		m.emit(Wake{})
	}
	return ok
}

// BeginNextEpoch asks for the epoch after the current one. NextEpoch reports when it has begun.
func (m *Machine) BeginNextEpoch(now time.Time) {
	if !m.turn(onWanted) {
		return
	}
	m.turnover = turnover{step: m.turnover.step, ticket: m.acks.added, next: m.epoch.Number + 1,
		pauses: wait.Backoff{First: FirstPause, Longest: LastPause}}
	m.Flush(now)
}

// StopNextEpoch says that the trainer does not wait for the next epoch any longer.
func (m *Machine) StopNextEpoch(now time.Time) {
	m.turnover.rest = time.Time{}
	m.turn(onGivenUp)
	m.advance(now)
}

// NextEpoch reports whether the rank is in its next epoch, or after its last one.
func (m *Machine) NextEpoch() (inNext, afterLast bool, err error) {
	t := &m.turnover
	return t.step == settled && m.epoch.Number >= t.next, t.step == finished, t.err
}

// advanceTurnover takes the steps that need no answer.
func (m *Machine) advanceTurnover(now time.Time) {
	t := &m.turnover
	switch t.step {
	case flushing:
		durable, err := m.Flushed(t.ticket)
		if err != nil {
			m.failTurnover(err)
		} else if durable && m.turn(onDurable) {
			m.emit(CallLease{Purpose: AskEpoch})
		}
	case resting:
		if !now.Before(t.rest) && m.turn(onRested) {
			t.rest = time.Time{}
			m.emit(CallLease{Purpose: AskEpoch})
		}
	case draining:
		if m.acks.sending == nil && m.turn(onSilent) {
			m.emit(Attach{})
		}
	}
}

// epochAnswered takes the answer to a lease call for the next epoch.
func (m *Machine) epochAnswered(a LeaseAnswer, now time.Time) {
	switch {
	case a.JobDone:
		m.turn(onJobDone)
	case len(a.Grants) > 0 || a.EpochDone:
		m.turn(onBegins)
	default:
		m.noteWaiting(a.Waiting, true, now)
		m.pause(onNotYet, now)
	}
}

// pause begins the pause after which the rank asks again.
func (m *Machine) pause(on stepEvent, now time.Time) {
	if m.turn(on) {
		m.turnover.rest = now.Add(m.turnover.pauses.Next())
	}
}

// Attached says that the rank has attached again.
func (m *Machine) Attached(a Attachment, now time.Time) {
	m.session, m.epoch = a.Session, a.Epoch
	m.acks.dropBefore(a.Epoch.Number)
	if a.Epoch.Number >= m.turnover.next {
		m.turn(onNew)
	} else {
		m.pause(onOld, now)
	}
	m.emit(Wake{})
	m.advance(now)
}

// AttachFailed says that the rank could not attach again.
func (m *Machine) AttachFailed(err error, now time.Time) {
	m.failTurnover(err)
	m.advance(now)
}

func (m *Machine) failTurnover(err error) {
	if m.turn(onFailedAt) {
		m.turnover.err = err
	}
}
