package lifecycle

import (
	"slices"

	"github.com/millrace/millrace/control/ledger"
)

// Rank is one rank of a job: its session, and the news that waits for its launcher.
type Rank struct {
	session             ledger.Session
	run                 Run  // This run attached last.
	adopted             bool // this leader knows what the session holds
	announcesEnd        bool // the launcher will report when the rank is through
	through             bool // the launcher announced it to this leader
	announcementAssumed bool // announcesEnd is assumed: no leader stored what the launcher announced
	offers              []offer
	revoked             []uint64
	callCount           uint64 // calls that waited for grants: the last call withdraws its want
}

// offer is a grant that the rank has not named among the leases that it holds. Every answer repeats the grant until
// then: an answer may be lost on its way, or reach an iteration that has ended.
type offer struct {
	ledger.Grant
	answered bool // an answer contained the grant
}

// MustShow reports whether the rank's launcher must show the leases that it holds before any is extended or revoked: an
// earlier leader granted them. fence is this leader's.
func (r *Rank) MustShow(s ledger.Session, fence uint64) bool { return !r.adopted && s.Fence != fence }

// Adopted reports whether this leader knows what the rank's session holds.
func (r *Rank) Adopted() bool { return r.adopted }

// Held records the leases that the rank's launcher names. From then on this leader knows what the session holds. No
// answer repeats the grant of a lease that the launcher names, or of a lease that is over.
func (r *Rank) Held(s ledger.Session, named []uint64, leased func(lease uint64) bool) {
	r.adopted, r.session = true, s
	if len(r.offers) == 0 {
		return
	}
	known := make(map[uint64]bool, len(named))
	for _, id := range named {
		known[id] = true
	}
	r.offers = slices.DeleteFunc(r.offers, func(o offer) bool { return known[o.ID] || !leased(o.ID) })
}

// FencedOff reports whether another session of the rank has attached since this one.
func (r *Rank) FencedOff(s ledger.Session) bool {
	return r.session != s && r.session != ledger.Session{}
}

// Wants begins a call that waits for some pieces. Grants that the rank has not named count as pieces: more is the
// number of pieces that the ledger has to grant beside them.
func (r *Rank) Wants(pieces int) (call uint64, more int) {
	r.callCount++
	return r.callCount, max(0, pieces-len(r.offers))
}

// HasNews reports whether an answer to the rank would contain a grant or a revocation.
func (r *Rank) HasNews() bool { return len(r.offers) > 0 || len(r.revoked) > 0 }

// Withdraws reports whether the end of a call withdraws the rank's want, because no later call waits by now.
func (r *Rank) Withdraws(call uint64) bool { return r.callCount == call }

// TakeUnanswered removes and returns the leases that were granted for a call whose caller has gone and that no answer
// contained.
func (r *Rank) TakeUnanswered() (leases []uint64) {
	r.offers = slices.DeleteFunc(r.offers, func(o offer) bool {
		if !o.answered {
			leases = append(leases, o.ID)
		}
		return !o.answered
	})
	return leases
}

// Answer returns the contents of an answer to the rank's launcher: the grants whose leases are not over, the leases
// among them that no earlier answer contained, and the leases that were revoked. Only one answer contains a revocation.
func (r *Rank) Answer(leased func(lease uint64) bool) (grants []ledger.Grant, first, revoked []uint64) {
	for i := range r.offers {
		if o := &r.offers[i]; leased(o.ID) {
			if !o.answered {
				first = append(first, o.ID)
			}
			o.answered = true
			grants = append(grants, o.Grant)
		}
	}
	revoked, r.revoked = r.revoked, nil
	return grants, first, revoked
}
