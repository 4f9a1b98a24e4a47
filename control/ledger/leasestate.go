package ledger

import (
	"slices"

	"github.com/millrace/millrace/internal/transition"
)

// leaseState is the state of a lease. It is a small number and not a string, because every lease has a state and
// looks it up twice.
type leaseState uint8

const (
	leaseWorking   leaseState = iota // its fragments are being made and fetched: the lease uses a stream of its drive
	leaseFetched                     // every fragment is at the launcher: the lease needs no drive
	leaseDelivered                   // every number is acknowledged
	leaseReturned                    // it came back; numbers that are not acknowledged are pending again
)

// String names the state.
func (s leaseState) String() string {
	return [...]string{"working", "fetched", "delivered", "returned"}[s]
}

// leaseEvent is an event that leads a lease from one state to another.
type leaseEvent uint8

const (
	onFetched leaseEvent = iota
	onDelivered
	onReturned
)

// String returns the event in words.
func (e leaseEvent) String() string {
	return [...]string{
		"the launcher has fetched all of it", "the last number is acknowledged",
		"expired, released, revoked or its rank is gone",
	}[e]
}

// leaseStates is the state machine of a lease; docs/architecture.md has a diagram of its events. A lease begins as
// working when it is granted; a lease that a new leader adopts may begin as fetched.
var leaseStates = transition.Table[leaseState, leaseEvent]{
	leaseWorking:   {onFetched: leaseFetched, onDelivered: leaseDelivered, onReturned: leaseReturned},
	leaseFetched:   {onDelivered: leaseDelivered, onReturned: leaseReturned},
	leaseDelivered: {},
	leaseReturned:  {},
}

// transition changes a lease's state on an event, and updates the counts and lists: a working lease uses a stream,
// and an ended lease is in no list. No other function changes the state. An event that the table does not have
// changes nothing.
func (l *Ledger) transition(le *lease, on leaseEvent) {
	next, ok := leaseStates.Next(le.state, on)
	if !ok {
		return
	}
	if le.state == leaseWorking {
		l.countStream(le, -1)
	}
	if le.drive != nil && next != leaseReturned {
		le.drive.noteSuccess()
	}
	if next == leaseDelivered {
		delete(le.job.doubts, splitOf{le.Epoch, le.Split})
	}
	le.state = next
	le.Fetched = le.Fetched || next == leaseFetched
	if leaseStates.Final(next) {
		l.removeLease(le)
	}
}

// removeLease removes a lease from all lists.
func (l *Ledger) removeLease(le *lease) {
	delete(l.leases, le.ID)
	is := func(o *lease) bool { return o == le }
	le.rank.leases = slices.DeleteFunc(le.rank.leases, is)
	if le.drive != nil {
		le.drive.leases = slices.DeleteFunc(le.drive.leases, is)
	}
}
