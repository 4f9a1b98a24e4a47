package protocol

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// leaseWait is how long the leader may wait for a lease that it can grant. It is well below the second in which the
	// rank must name the leases that it holds again.
	leaseWait = 500 * time.Millisecond
	// leaseRest is the pause after a call that asked for leases, and that the leader answered at once without one.
	leaseRest = 250 * time.Millisecond
	// stuckTime is how long the rank may hold no lease for the fragment that is due, before it gives a later lease back.
	stuckTime = 2 * time.Second
	// closeTime is how long the end of a delivery, and of a rank, waits for the control plane.
	closeTime = 3 * time.Second
)

// Reasons for which a rank gives a lease back. The control plane reads the words before the colon.
const (
	reasonStop = "stop"
	reasonData = "data: "
	reasonNode = "node: "
	// ReasonDetach and ReasonDone are of a rank that gives all of its leases back.
	ReasonDetach = "detach"
	ReasonDone   = "done"
)

// delivery is one epoch while it is delivered: the leases that the rank holds, and the calls about them.
type delivery struct {
	ask, report rhythm
	held        map[uint64]*lease // by the leader's number
	ready       []*lease          // granted, not started
	running     map[uint64]*lease // leases of pieces under way, also of leases that are not held any more
	ended       endedLeases
	adopt       bool              // the leader is new and asks for a description of each lease that the rank holds
	toReturn    []returned        // leases to give back
	returning   *returned         // leases that the call under way gives back; nil: none
	refused     map[int]time.Time // by the split's position in the plan: since when nodes have refused it
	stuckSince  time.Time         // since when the rank holds no lease for the fragment that is due; zero: it holds one
	err         error             // ends the delivery
	ending      *ending           // nil: the trainer still takes mini-batches
}

// lease is what the rank knows of a lease that it holds.
type lease struct {
	Grant
	fetched bool // every fragment has come
}

// returned is leases that go back for one reason.
type returned struct {
	reason string
	leases []uint64
}

// ending is the end of a delivery.
type ending struct {
	deadline time.Time
	ticket   uint64 // counts the acknowledgements that are to become durable
	flushed  bool   // they are durable, or will not become so
	over     bool
	err      error
}

// rhythm is when a lease call of one purpose is made: one at a time, with a pause after each. A signal ends the pause.
type rhythm struct {
	calling bool
	signal  bool
	next    time.Time // when the pause ends
	begun   time.Time // when the call under way began
	wanted  bool      // the call under way asks for leases
}

// rest begins the pause after a call.
func (r *rhythm) rest(now time.Time, pause time.Duration) { r.calling, r.next = false, now.Add(pause) }

// endRests has both calls made at once.
func (d *delivery) endRests() { d.ask.signal, d.report.signal = true, true }

// nextTime returns when the delivery waits no longer; the zero time if it waits for answers only.
func (d *delivery) nextTime() (first time.Time) {
	switch {
	case d.ending != nil && d.ending.over:
	case d.ending != nil:
		first = d.ending.deadline
	case d.err == nil:
		for _, r := range []rhythm{d.ask, d.report} {
			if !r.calling && (first.IsZero() || r.next.Before(first)) {
				first = r.next
			}
		}
	}
	return first
}

// BeginDelivery begins to ask for leases of the epoch.
func (m *Machine) BeginDelivery(now time.Time) error {
	if m.acks.err != nil {
		return m.acks.err
	}
	m.delivery = &delivery{held: map[uint64]*lease{}, running: map[uint64]*lease{}, refused: map[int]time.Time{}}
	m.advance(now)
	return nil
}

// EndDelivery gives every lease back once the trainer's acknowledgements are durable. DeliveryEnded reports when that
// is done, or has taken too long.
func (m *Machine) EndDelivery(now time.Time) {
	m.delivery.ending = &ending{deadline: now.Add(closeTime), ticket: m.acks.added}
	m.Flush(now)
}

// DeliveryEnded reports whether the delivery that EndDelivery ends has ended, and what could not be done.
func (m *Machine) DeliveryEnded() (ended bool, err error) {
	if e := m.delivery.ending; !e.over {
		return false, nil
	}
	err = m.delivery.ending.err
	m.delivery = nil
	return true, err
}

// advanceDelivery begins the calls that are due.
func (m *Machine) advanceDelivery(now time.Time) {
	d := m.delivery
	if d == nil {
		return
	}
	if d.ending != nil {
		m.advanceEnding(d, now)
	} else if d.err == nil {
		m.callLease(&d.ask, AskLeases, now)
		m.callLease(&d.report, ReportLeases, now)
	}
	goesOn := d.ending == nil && d.err == nil || d.ending != nil && d.ending.flushed && !d.ending.over
	if goesOn && d.returning == nil && len(d.toReturn) > 0 {
		d.returning, d.toReturn = &d.toReturn[0], d.toReturn[1:]
		m.emit(Release{Session: m.session, Leases: d.returning.leases, Reason: d.returning.reason})
	}
}

// callLease makes a lease call if it is time.
func (m *Machine) callLease(r *rhythm, purpose Purpose, now time.Time) {
	if r.calling || !r.signal && now.Before(r.next) {
		return
	}
	*r = rhythm{calling: true, begun: now}
	m.emit(CallLease{Purpose: purpose})
}

// advanceEnding takes the delivery one step towards its end: acknowledgements become durable, then leases go back.
func (m *Machine) advanceEnding(d *delivery, now time.Time) {
	e := d.ending
	if e.over {
		return
	}
	if errors.Is(d.err, ErrFenced) {
		e.over = true
		m.emit(Wake{})
		return
	}
	late := !now.Before(e.deadline)
	if !e.flushed {
		durable, err := m.Flushed(e.ticket)
		if e.err = err; late && err == nil && !durable {
			e.err = errLate
		}
		if !durable && e.err == nil {
			return
		}
		e.flushed = true
		m.dropDelivered()
		for _, id := range sortedKeys(d.held) {
			m.release(id, reasonStop)
		}
	}
	if returned := d.returning == nil && len(d.toReturn) == 0; returned || late {
		if e.over = true; !returned {
			e.err = errors.Join(e.err, fmt.Errorf("give leases back: %w", errLate))
		}
		m.emit(Wake{})
	}
}

// failDelivery ends the delivery under way with an error.
func (m *Machine) failDelivery(err error) {
	if d := m.delivery; d != nil && d.err == nil {
		d.err = err
		m.emit(Wake{})
	}
}

// Released says that the control plane has taken back the leases of the call under way.
func (m *Machine) Released(now time.Time) { m.noteReleased(nil, now) }

// ReleaseFailed says that the call that gives leases back failed for good.
func (m *Machine) ReleaseFailed(err error, now time.Time) { m.noteReleased(err, now) }

func (m *Machine) noteReleased(err error, now time.Time) {
	if m.departure.leaving {
		m.noteDeparted(err, now)
		return
	}
	d := m.delivery
	if d == nil {
		return // the delivery did not wait for the answer any longer
	}
	leases := d.returning
	d.returning = nil
	switch {
	case err == nil:
	case d.ending == nil:
		m.failDelivery(err)
		fallthrough
	case !d.ending.flushed: // the call was ended for the end of the delivery, which gives them back
		d.toReturn = append(d.toReturn, *leases)
	default:
		d.toReturn, d.ending.err = nil, errors.Join(d.ending.err, err)
	}
	m.advance(now)
}

// release forgets a lease that the rank holds, and gives it back.
func (m *Machine) release(id uint64, reason string) {
	d := m.delivery
	l := d.held[id]
	if l == nil {
		return
	}
	d.drop(l)
	for i := range d.toReturn {
		if d.toReturn[i].reason == reason {
			d.toReturn[i].leases = append(d.toReturn[i].leases, id)
			return
		}
	}
	d.toReturn = append(d.toReturn, returned{reason: reason, leases: []uint64{id}})
}

// drop forgets a lease.
func (d *delivery) drop(l *lease) {
	delete(d.held, l.Lease)
	d.ended.add(l.Lease)
	if i := slices.Index(d.ready, l); i >= 0 {
		d.ready = slices.Delete(d.ready, i, i+1)
	}
}

// dropDelivered forgets the leases of which the ledger knows that every mini-batch was delivered. A fragment of a
// mini-batch whose other fragments have still to come is not delivered: the ledger lends it to nobody else while the
// rank holds its lease.
func (m *Machine) dropDelivered() {
	if m.delivery == nil {
		return
	}
	for _, id := range sortedKeys(m.delivery.held) {
		if l := m.delivery.held[id]; l.fetched && m.isDurable(l) {
			m.delivery.drop(l)
			m.emit(CancelPiece{Lease: id, Why: Delivered})
		}
	}
}

// StartPiece returns a lease whose fragments are to be fetched from now on. ok is false while there is none. The
// error ends the delivery.
func (m *Machine) StartPiece() (id uint64, ok bool, err error) {
	d := m.delivery
	if d.err != nil || len(d.ready) == 0 {
		return 0, false, d.err
	}
	l := d.ready[0]
	d.ready = d.ready[1:]
	d.running[l.Lease] = l
	return l.Lease, true, nil
}

// EveryBatchCame ends the pieces under way, which can bring nothing new.
func (m *Machine) EveryBatchCame() {
	for _, id := range sortedKeys(m.delivery.held) {
		m.emit(CancelPiece{Lease: id, Why: NothingMissing})
	}
}
