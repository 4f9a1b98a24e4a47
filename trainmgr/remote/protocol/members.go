package protocol

import (
	"slices"
	"time"

	"github.com/millrace/millrace/internal/wait"
)

// maxFollows is how many members in a row may name another leader before a call pauses: during an election two members
// may name each other.
const maxFollows = 3

// Members are the members of the control plane as a client knows them.
type Members struct {
	configured []string // base URLs
	preferred  string   // base URL of the member to ask first; it may be that of a leader that is not configured
	patience   time.Duration
	contact    time.Duration // in place of patience until a member has answered
	answered   bool
}

// NewMembers makes the members of a client that goes on asking for its patience, or for the time of contact until a
// member has answered once.
func NewMembers(configured []string, patience, contact time.Duration) Members {
	return Members{configured: configured, preferred: configured[0], patience: patience, contact: contact}
}

// Preferred returns the base URL of the member to ask first.
func (s *Members) Preferred() string { return s.preferred }

// Configured returns the base URLs of the configured members.
func (s *Members) Configured() []string { return s.configured }

// Answered reports whether a member has answered once.
func (s *Members) Answered() bool { return s.answered }

// NoteAnswer notes that a member of a control plane has answered. From now on a failure is the network's or the
// member's fault, and not the address's.
func (s *Members) NoteAnswer() { s.answered = true }

// Patience returns how long a call goes on asking.
func (s *Members) Patience() time.Duration {
	if s.answered {
		return s.patience
	}
	return min(s.patience, s.contact)
}

// PreferNext prefers the member after a member that did not answer, unless another call has changed the preferred
// member.
func (s *Members) PreferNext(failed string) {
	if s.preferred == failed { // the index of a leader that is not among the configured members is -1
		s.preferred = s.configured[(slices.Index(s.configured, failed)+1)%len(s.configured)]
	}
}

// CallFault is the reaction to an error of a call.
type CallFault uint8

// The faults of a call.
const (
	FinalAnswer CallFault = iota // every member would answer the same
	AskOther                     // ask another member
	AskLater                     // ask the same member again
	NotLeader                    // the member names the leader, or knows none
)

// Attempts are the attempts of one call.
type Attempts struct {
	begun   time.Time
	pauses  wait.Backoff
	follows int // members in a row that named another leader
}

// BeginAttempts begins a call.
func BeginAttempts(now time.Time) Attempts {
	return Attempts{begun: now, pauses: wait.Backoff{First: FirstPause, Longest: LastPause}}
}

// Retry says what follows on a failed attempt.
type Retry struct {
	Never  bool // the call has failed: every member would answer the same, or the patience is over
	Pause  time.Duration
	Waited time.Duration // since the call began
}

// Failed says how the attempt at a member failed. leader is the base URL of the leader that the member named; empty: it
// named none, or one that cannot be called.
func (a *Attempts) Failed(s *Members, member string, fault CallFault, leader string, now time.Time) Retry {
	switch fault {
	case FinalAnswer:
		return Retry{Never: true}
	case AskOther:
		s.PreferNext(member)
	case NotLeader:
		if leader == "" {
			s.PreferNext(member)
			break
		}
		s.preferred = leader
		if a.follows++; a.follows <= maxFollows {
			return Retry{}
		}
	}
	a.follows = 0
	r := Retry{Pause: a.pauses.Next(), Waited: now.Sub(a.begun)}
	r.Never = r.Waited+r.Pause > s.Patience()
	return r
}
