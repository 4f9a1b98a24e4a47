package lifecycle

import (
	"slices"

	"github.com/millrace/millrace/trainmgr/control/ledger"
)

// Rank is one rank of a job: which session it has, and what waits to be said to its launcher.
type Rank struct {
	session      ledger.Session
	run          Run  // that attached last
	adopted      bool // this leader knows what the session holds
	announcesEnd bool // the launcher will say when the rank is through
	through      bool // the launcher has said so, in this leader's time
	assumed      bool // announcesEnd is: an earlier leader did not store what the launcher said
	offers       []offer
	revoked      []uint64
	calls        uint64 // that waited for grants: the last one withdraws what it wanted
}

// offer is a grant that the rank has not named among the leases that it holds. It is said with every answer until then:
// an answer may be lost on its way, or reach an iteration that has ended.
type offer struct {
	ledger.Grant
	said bool
}

// Rank returns a rank of the job; nil: it has none of that number.
func (j *Job) Rank(number uint32) *Rank {
	if int64(number) >= int64(len(j.ranks)) {
		return nil
	}
	return &j.ranks[number]
}

// Granted says that the ledger granted a rank a lease.
func (j *Job) Granted(g ledger.Grant) {
	if r := j.Rank(g.Rank); r != nil {
		r.offers = append(r.offers, offer{Grant: g})
		j.machine.emit(WakeRank{Job: j.ID, Rank: g.Rank})
	}
}

// Revoked says that the ledger took a lease of a rank back.
func (j *Job) Revoked(v ledger.Revocation) {
	if r := j.Rank(v.Rank); r != nil {
		r.revoked = append(r.revoked, v.Lease)
		r.offers = slices.DeleteFunc(r.offers, func(o offer) bool { return o.ID == v.Lease })
		j.machine.emit(WakeRank{Job: j.ID, Rank: v.Rank})
	}
}

// MustShow reports whether the rank's launcher must show the leases that it holds before any is extended or revoked: an
// earlier leader granted them. fence is this leader's.
func (r *Rank) MustShow(s ledger.Session, fence uint64) bool { return !r.adopted && s.Fence != fence }

// Adopted reports whether this leader knows what the rank's session holds.
func (r *Rank) Adopted() bool { return r.adopted }

// Held says which leases the rank's launcher names, and that its report was taken. A named lease was heard of, and a
// grant whose lease is over need not be said.
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

// Wants begins a call that waits for some pieces. Grants that the rank has not heard of
// count: more is how many pieces the ledger has to grant beside them.
func (r *Rank) Wants(pieces int) (call uint64, more int) {
	r.calls++
	return r.calls, max(0, pieces-len(r.offers))
}

// HasNews reports whether there is something to say to the rank.
func (r *Rank) HasNews() bool { return len(r.offers) > 0 || len(r.revoked) > 0 }

// Withdraws reports whether the end of a call ends what the rank wants: no later call waits by now.
func (r *Rank) Withdraws(call uint64) bool { return r.calls == call }

// TakeUnsaid removes and returns the leases that came for a call whose caller has gone: they were never said.
func (r *Rank) TakeUnsaid() (leases []uint64) {
	r.offers = slices.DeleteFunc(r.offers, func(o offer) bool {
		if !o.said {
			leases = append(leases, o.ID)
		}
		return !o.said
	})
	return leases
}

// Say returns what an answer to the rank's launcher says: its grants, but for those that are not leased any more, and
// the leases that were revoked, which are said once.
func (r *Rank) Say(leased func(lease uint64) bool) (grants []ledger.Grant, revoked []uint64) {
	for i := range r.offers {
		if o := &r.offers[i]; leased(o.ID) {
			o.said = true
			grants = append(grants, o.Grant)
		}
	}
	revoked, r.revoked = r.revoked, nil
	return grants, revoked
}
