package ledger

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Errors that callers distinguish.
var (
	ErrUnknown  = errors.New("ledger: unknown")
	ErrSession  = errors.New("ledger: the session was fenced off: attach again")
	ErrArgument = errors.New("ledger: argument")
)

// Defaults of Config.
const (
	DefaultLeaseTTL = 10 * time.Second
	DefaultPatience = 2 * time.Second
	DefaultAvoid    = time.Second
)

// Config holds the settings of a ledger. The zero value works.
type Config struct {
	Fence      uint64        // create revision of the leader's key: enters lease ids, sessions and records
	LeaseTTL   time.Duration // a lease that no call names for this time comes back; 0 means DefaultLeaseTTL
	Patience   time.Duration // how long a blocked rank keeps a stream that another waits for; 0 means DefaultPatience
	Avoid      time.Duration // how long a rank is not granted a drive that failed it; 0 means DefaultAvoid
	GrantAfter time.Time     // nothing is granted before: the adopt window
}

// Ledger holds the splits of all jobs of a cluster.
type Ledger struct {
	config  Config
	jobs    []*job   // in the order in which they were added, which breaks ties
	drives  []*drive // by ID
	leases  map[uint64]*lease
	counter uint64 // counter numbers leases and sessions.
	round   uint64 // round numbers offers.
	effects Effects
	broken  *InvariantError // broken is the first broken invariant, or nil.
	// placementVersion grows with every change of the set of drives, of the partitions that drives hold, and of the
	// drives on which leases can be granted.
	placementVersion uint64
}

// New makes an empty ledger.
func New(c Config) *Ledger {
	if c.LeaseTTL <= 0 {
		c.LeaseTTL = DefaultLeaseTTL
	}
	if c.Patience <= 0 {
		c.Patience = DefaultPatience
	}
	if c.Avoid <= 0 {
		c.Avoid = DefaultAvoid
	}
	return &Ledger{config: c, leases: make(map[uint64]*lease), placementVersion: 1}
}

// EpochRef names an epoch.
type EpochRef struct {
	Job    string
	Number uint64
}

// Failure is a job that cannot go on.
type Failure struct{ Job, Why string }

// Effects holds the consequences of the events since the last call of Ready, each kind in the order in which they came.
type Effects struct {
	Grants  []Grant
	Revoked []Revocation
	Needed  []EpochRef // a rank asks for an epoch that was not begun
	Done    []EpochRef // every owned number is acknowledged
	Failed  []Failure
	Back    []Lease // ended before all their numbers were delivered
}

// Ready returns the effects since the last call.
func (l *Ledger) Ready() Effects {
	e := l.effects
	l.effects = Effects{}
	return e
}

// Tick applies the passing of time: leases expire, patience ends, the adopt window ends.
func (l *Ledger) Tick(now time.Time) {
	var late []*lease
	for _, le := range l.leases {
		if !now.Before(le.deadline) {
			late = append(late, le)
		}
	}
	slices.SortFunc(late, byLeaseID)
	for _, le := range late {
		l.revoke(le, fmt.Sprintf("not held for %v", l.config.LeaseTTL))
	}
	for _, d := range l.drives {
		if d.state == driveUnknown && now.Sub(d.since) >= l.config.LeaseTTL {
			l.loseDrive(d, "it did not appear after a change of leader")
		}
	}
	l.recall(now)
	l.schedule(now)
	l.preempt(now)
}
