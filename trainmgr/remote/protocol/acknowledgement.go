package protocol

import (
	"time"

	"github.com/millrace/millrace/sdk/dataset"
)

// acknowledgements carries one rank's acknowledgements to the ledger, in groups. One call is under way at a time;
// acknowledgements that come meanwhile go with the next call.
type acknowledgements struct {
	fullGroup int           // A group of this size is sent without delay.
	delay     time.Duration // the longest that an acknowledgement waits for others

	groups  []ackGroup // each of another epoch, in the order in which they began
	sending *ackGroup  // the group of the call under way; nil: none
	round   int        // groups that are to be sent without another delay
	waiting int        // acknowledgements in groups
	due     time.Time  // when the groups are sent, unless a call is under way; zero: no group waits for it
	added   uint64     // acknowledgements since the start
	wanted  uint64     // This number of acknowledgements must become durable without delay.
	err     error      // the first error; nothing is sent after it
	known   uint64     // This number of acknowledgements was durable when err occurred.
}

// ackGroup holds the acknowledgements of one epoch, which one call sends.
type ackGroup struct {
	epoch   uint64
	numbers []dataset.Range
	count   int    // acknowledgements, repeated ones included
	first   uint64 // first counts the acknowledgements since the start up to the first of the group.
}

func (a *acknowledgements) addNumber(epoch, number uint64, now time.Time) {
	g := a.grow(epoch, now)
	g.numbers = dataset.InsertNumber(g.numbers, number)
}

func (a *acknowledgements) addRanges(epoch uint64, numbers []dataset.Range, now time.Time) {
	g := a.grow(epoch, now)
	g.numbers = dataset.UnionRanges(g.numbers, numbers)
}

// grow counts an acknowledgement that waits now, and returns the group of its epoch.
func (a *acknowledgements) grow(epoch uint64, now time.Time) *ackGroup {
	a.added++
	a.waiting++
	if a.due.IsZero() && a.sending == nil {
		a.due = now.Add(a.delay)
	}
	for i := range a.groups {
		if a.groups[i].epoch == epoch {
			a.groups[i].count++
			return &a.groups[i]
		}
	}
	a.groups = append(a.groups, ackGroup{epoch: epoch, count: 1, first: a.added})
	return &a.groups[len(a.groups)-1]
}

// durable returns how many of the first acknowledgements the ledger knows without a gap.
func (a *acknowledgements) durable() uint64 {
	durable := a.added
	if a.sending != nil {
		durable = a.sending.first - 1
	}
	for i := range a.groups {
		durable = min(durable, a.groups[i].first-1)
	}
	return durable
}

// deadline returns when the groups that wait are due; the zero time if none waits for its time.
func (a *acknowledgements) deadline() time.Time {
	if a.sending != nil || a.err != nil || len(a.groups) == 0 {
		return time.Time{}
	}
	return a.due
}

// next returns the group to send now, or nil. A full group is sent at once, another group after the delay or when a
// caller waits for it. Acknowledgements that come during a round begin another one.
func (a *acknowledgements) next(now time.Time) *ackGroup {
	if a.sending != nil || a.err != nil || len(a.groups) == 0 {
		return nil
	}
	if a.round == 0 {
		if a.waiting < a.fullGroup && a.durable() >= a.wanted && now.Before(a.due) {
			return nil
		}
		a.round, a.due = len(a.groups), time.Time{}
	}
	g := a.groups[0]
	a.groups = a.groups[1:]
	a.round--
	a.waiting -= g.count
	a.sending = &g
	return a.sending
}

// answered ends the call under way and returns its group.
func (a *acknowledgements) answered(now time.Time) ackGroup {
	g := *a.sending
	a.sending = nil
	if a.round == 0 && len(a.groups) > 0 {
		a.due = now.Add(a.delay)
	}
	return g
}

// dropBefore drops the acknowledgements of earlier epochs: a rank enters an epoch when the ledger knows that every
// mini-batch of the epoch before was delivered.
func (a *acknowledgements) dropBefore(epoch uint64) {
	var kept []ackGroup
	for _, g := range a.groups {
		if g.epoch < epoch {
			a.waiting -= g.count
		} else {
			kept = append(kept, g)
		}
	}
	if a.groups = kept; len(kept) == 0 {
		a.due = time.Time{}
	}
	a.round = min(a.round, len(kept))
}

// Acknowledge takes an acknowledgement of the trainer. It returns the error of an earlier acknowledgement that the
// control plane refused.
func (m *Machine) Acknowledge(epoch, number uint64, now time.Time) error {
	if m.acks.err != nil {
		return m.acks.err
	}
	m.acks.addNumber(epoch, number, now)
	m.advance(now)
	return nil
}

// Flush has every acknowledgement so far sent without delay. Flushed reports whether those, which the ticket counts,
// are durable.
func (m *Machine) Flush(now time.Time) (ticket uint64) {
	m.acks.wanted = m.acks.added
	m.advance(now)
	return m.acks.added
}

// Flushed reports whether the acknowledgements of a ticket are durable. It returns an error if they cannot become so.
func (m *Machine) Flushed(ticket uint64) (durable bool, err error) {
	switch {
	case m.acks.err != nil && m.acks.known < ticket:
		return false, m.acks.err
	case m.acks.err != nil, m.acks.durable() >= ticket:
		return true, nil
	case m.departure.left:
		return false, errClosed
	}
	return false, nil
}

// sendAcknowledgements sends the group that is due.
func (m *Machine) sendAcknowledgements(now time.Time) {
	if m.turnover.attaching() {
		return
	}
	if g := m.acks.next(now); g != nil {
		m.emit(SendAcknowledgements{Session: m.session, Epoch: g.epoch, Numbers: g.numbers})
	}
}

// Acknowledged says that the ledger knows the acknowledgements of the call under way, by the leader of the fence.
func (m *Machine) Acknowledged(fence uint64, now time.Time) {
	g := m.acks.answered(now)
	if g.epoch == m.epoch.Number {
		for _, numbers := range g.numbers {
			for n := numbers.From; n < numbers.To; n++ {
				_ = m.epoch.Durable.Ack(n) // does not fail: the trainer acknowledged the number, so the plan has it
			}
		}
	}
	m.noteFence(fence, now)
	m.dropDelivered()
	m.emit(Wake{})
	m.advance(now)
}

// AcknowledgeFailed says that the call under way failed for good. It ends the delivery.
func (m *Machine) AcknowledgeFailed(err error, now time.Time) {
	m.acks.known, m.acks.err = m.acks.durable(), err
	m.acks.answered(now)
	m.failDelivery(err)
	m.emit(Wake{})
	m.advance(now)
}
