package presence

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Defaults of Options.
const (
	DefaultSilence = 10 * time.Second
	DefaultGrace   = 250 * time.Millisecond
)

// Options bound how long a rank counts as attached. The zero value works.
type Options struct {
	Silence time.Duration // without a call; 0 means DefaultSilence
	Grace   time.Duration // after the last connection was closed; 0 means DefaultGrace
}

// Rank names a rank of a job.
type Rank struct {
	Job    string
	Number uint32
}

// Conn is a launcher's connection. 0 stands for a connection that is not watched: its end is not reported.
type Conn uint64

// State is the presence of a rank's launcher.
type State struct {
	Attached bool
	Last     time.Time // Last is the time of its last call.
	Why      string    // why the rank is detached; empty while it is attached
}

// Departure is a rank that has become detached.
type Departure struct {
	Rank
	Why  string
	Last time.Time // Last is the time of its last call.
}

// Tracker knows the launchers of all ranks.
type Tracker struct {
	o     Options
	ranks map[Rank]*launcher
	conns map[Conn]map[Rank]struct{}
	gone  []Departure // since the last Tick
}

// launcher is the consumer of a rank.
type launcher struct {
	State
	conns map[Conn]struct{} // open ones, on which it called
	lost  time.Time         // when the last of conns was closed; zero: one is open, or the launcher has called since
}

// New makes a Tracker without launchers.
func New(o Options) *Tracker {
	if o.Silence <= 0 {
		o.Silence = DefaultSilence
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	return &Tracker{o: o, ranks: map[Rank]*launcher{}, conns: map[Conn]map[Rank]struct{}{}}
}

// Attach records that a launcher has become the rank's consumer. The connections of an earlier launcher no longer
// count.
func (t *Tracker) Attach(r Rank, c Conn, now time.Time) {
	t.drop(r)
	t.Call(r, c, now)
}

// Call records that the rank's launcher called on a connection.
func (t *Tracker) Call(r Rank, c Conn, now time.Time) {
	l := t.ranks[r]
	if l == nil {
		l = &launcher{conns: map[Conn]struct{}{}}
		t.ranks[r] = l
	}
	l.State, l.lost = State{Attached: true, Last: now}, time.Time{}
	if c == 0 {
		return
	}
	l.conns[c] = struct{}{}
	if t.conns[c] == nil {
		t.conns[c] = map[Rank]struct{}{}
	}
	t.conns[c][r] = struct{}{}
}

// Leave records that the rank's launcher ends.
func (t *Tracker) Leave(r Rank, now time.Time) {
	if l := t.ranks[r]; l != nil && l.Attached {
		l.Last = now
		t.detach(r, l, "its launcher has ended")
	}
}

// Closed records that a connection is closed.
func (t *Tracker) Closed(c Conn, now time.Time) {
	for r := range t.conns[c] {
		l := t.ranks[r]
		delete(l.conns, c)
		if len(l.conns) == 0 && l.Attached {
			l.lost = now
		}
	}
	delete(t.conns, c)
}

// Tick lets time pass. It returns the ranks that have become detached since the last Tick: first those that left, then
// those that time has detached, by job and number.
func (t *Tracker) Tick(now time.Time) []Departure {
	var late []Rank
	for r, l := range t.ranks {
		if l.Attached && (t.lost(l, now) || t.silent(l, now)) {
			late = append(late, r)
		}
	}
	slices.SortFunc(late, func(a, b Rank) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Number,
			b.Number))
	})
	for _, r := range late {
		l := t.ranks[r]
		why := "its launcher has closed its connections: it has ended, or was killed"
		if !t.lost(l, now) {
			why = fmt.Sprintf("its launcher has not called for %v", t.o.Silence)
		}
		t.detach(r, l, why)
	}
	// the rank was attached again meanwhile
	gone := slices.DeleteFunc(t.gone, func(d Departure) bool { return t.Of(d.Rank).Attached })
	t.gone = nil
	return gone
}

func (t *Tracker) lost(l *launcher, now time.Time) bool {
	return !l.lost.IsZero() && now.Sub(l.lost) >= t.o.Grace
}

func (t *Tracker) silent(l *launcher, now time.Time) bool { return now.Sub(l.Last) >= t.o.Silence }

func (t *Tracker) detach(r Rank, l *launcher, why string) {
	t.drop(r)
	l.Attached, l.Why, l.lost = false, why, time.Time{}
	t.gone = append(t.gone, Departure{Rank: r, Why: why, Last: l.Last})
}

// drop forgets on which connections a rank's launcher called.
func (t *Tracker) drop(r Rank) {
	l := t.ranks[r]
	if l == nil {
		return
	}
	for c := range l.conns {
		delete(t.conns[c], r)
		if len(t.conns[c]) == 0 {
			delete(t.conns, c)
		}
	}
	clear(l.conns)
}

// Of returns the State of a rank's launcher, or the zero State if the launcher never called.
func (t *Tracker) Of(r Rank) State {
	if l := t.ranks[r]; l != nil {
		return l.State
	}
	return State{}
}

// Forget forgets the first ranks of a job, which has ended.
func (t *Tracker) Forget(job string, ranks int) {
	for n := range ranks {
		r := Rank{Job: job, Number: uint32(n)}
		t.drop(r)
		delete(t.ranks, r)
	}
	t.gone = slices.DeleteFunc(t.gone, func(d Departure) bool { return d.Job == job })
}
