package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/trainmgr/control/ledger"
	"github.com/millrace/millrace/trainmgr/control/presence"
	"github.com/millrace/millrace/trainmgr/control/record"
)

// connections numbers the connections that a member has accepted, so that the leader hears when one is closed.
type connections struct {
	last atomic.Uint64
	open sync.Map // of net.Conn: presence.Conn
	live sync.Map // of presence.Conn: struct{}
}

// connKey is where a call's context has its connection.
type connKey struct{}

// opened is an http.Server's ConnContext.
func (c *connections) opened(ctx context.Context, conn net.Conn) context.Context {
	n := presence.Conn(c.last.Add(1))
	c.open.Store(conn, n)
	c.live.Store(n, struct{}{})
	return context.WithValue(ctx, connKey{}, n)
}

// closed returns which connection an http.Server says, by its ConnState, is closed.
func (c *connections) closed(conn net.Conn, to http.ConnState) (presence.Conn, bool) {
	if to != http.StateClosed && to != http.StateHijacked {
		return 0, false
	}
	n, ok := c.open.LoadAndDelete(conn)
	if !ok {
		return 0, false
	}
	c.live.Delete(n)
	return n.(presence.Conn), true
}

// of returns the connection of a call: 0 if it is closed by now, or is none of ours.
func (c *connections) of(ctx context.Context) presence.Conn {
	n, _ := ctx.Value(connKey{}).(presence.Conn)
	if _, open := c.live.Load(n); !open {
		return 0
	}
	return n
}

// connState hears of connections that end.
func (s *Server) connState(conn net.Conn, to http.ConnState) {
	n, ok := s.connections.closed(conn, to)
	if !ok {
		return
	}
	if l := s.leading.Load(); l != nil {
		l.mu.Lock()
		l.presence.Closed(n, time.Now())
		l.mu.Unlock()
	}
}

// heard notes that a rank's launcher called: ctx is the call's. l.mu is held.
func (l *leader) heard(ctx context.Context, j *job, n uint32, now time.Time) {
	l.presence.Call(presence.Rank{Job: j.ID, Number: n}, l.s.connections.of(ctx), now)
	l.attended(j)
}

// attended notes that a rank of the job is there. l.mu is held.
func (l *leader) attended(j *job) {
	if !j.Unattended.IsZero() {
		j.Unattended, j.dirty = time.Time{}, true
	}
}

// leave detaches a rank whose launcher says that it ends: what it holds comes back. l.mu is held.
func (l *leader) leave(j *job, n uint32, now time.Time) {
	l.presence.Leave(presence.Rank{Job: j.ID, Number: n}, now)
	l.departures(now)
}

// departures takes back what detached ranks hold. l.mu is held.
func (l *leader) departures(now time.Time) {
	for _, d := range l.presence.Tick(now) {
		j, r := l.jobs[d.Job], l.rank(d.Job, d.Number)
		if r == nil || j.Phase.Ended() {
			continue
		}
		r.grants = nil
		if err := l.ledger.Detach(d.Job, d.Number, d.Why, now); err != nil && !errors.Is(err, ledger.ErrUnknown) {
			l.logger.Error("detach a rank", "job", d.Job, "rank", d.Number, "error", err)
		}
		l.logger.Info("rank detached", "job", d.Job, "rank", d.Number, "why", d.Why, "last_call", d.Last)
	}
}

// abandon ends the jobs that nobody has called about for too long. l.mu is held.
func (l *leader) abandon(now time.Time) {
	for _, j := range l.jobs {
		if !j.Phase.Begun() || j.finished {
			continue // a job whose every mini-batch is delivered ends by itself
		}
		if attached, last := l.attendance(j); attached {
			l.attended(j)
			continue
		} else if j.Unattended.IsZero() {
			if last.IsZero() {
				last = now // nobody has called yet, or not since this leader leads
			}
			j.Unattended, j.dirty = last.UTC(), true
		}
		after := l.abandonAfter(j)
		if after <= 0 || now.Sub(j.Unattended) < after {
			continue
		}
		j.Token = l.lastToken(j)
		l.end(j, record.Abandoned, fmt.Sprintf("no rank has called since %s, for more than %v", j.Unattended.Format(time.RFC3339), after), now)
	}
}

// lastToken is what was acknowledged of a job that is about to be abandoned: whoever comes back to it has no other job
// to go on with. l.mu is held.
func (l *leader) lastToken(j *job) []byte {
	t, err := l.ledger.Token(j.ID)
	if err == nil {
		var b []byte
		if b, err = t.MarshalBinary(); err == nil && len(b) <= maxLastToken {
			return b
		}
	}
	l.logger.Warn("of an abandoned job no token is kept", "job", j.ID, "error", err)
	return nil
}

// maxLastToken is the largest token that is kept of an abandoned job.
const maxLastToken = 256 << 10

// attendance reports whether a rank of the job is attached, and when one called last. l.mu is held.
func (l *leader) attendance(j *job) (attached bool, last time.Time) {
	for n := range j.ranks {
		st := l.presence.Of(presence.Rank{Job: j.ID, Number: uint32(n)})
		attached = attached || st.Attached
		if st.Last.After(last) {
			last = st.Last
		}
	}
	return attached, last
}

// abandonAfter is how long a job may be without a call of any rank; 0: for ever.
func (l *leader) abandonAfter(j *job) time.Duration {
	if s := j.spec.AbandonAfterSeconds; s > 0 {
		return time.Duration(s * float64(time.Second))
	}
	return max(l.o.AbandonAfter, 0)
}
