package tcp

import (
	"errors"
	"fmt"
	"net"

	"github.com/millrace/millrace/internal/admission"
)

// share is the part of a target's connections that a connection counts for. A connection whose host has proven nothing
// yet counts for a share of its own, so that it takes no place of those that have; where such a share is full its
// oldest connection makes room.
type share uint8

const (
	shareOpening         share = iota // before Connect
	shareUnauthenticated              // a queue whose host must authenticate and has not yet
	shareDiscovery                    // a discovery association, for which nobody authenticates
	shareAdmitted                     // a queue of a drive that may be used
	shareLeaving                      // cut off to make room; counts for nothing
	shares
)

// Reasons to cut a connection that makes room, and to end one that there is no room for.
var (
	errEvicted = errors.New("it made room for a newer connection, as its share of the connections is full")
	errFull    = errors.New("the target has as many connections as it takes")
)

// limit returns how many connections of a share there may be.
func (t *Target) limit(s share) int {
	switch s {
	case shareOpening:
		return t.opt.MaxOpening
	case shareUnauthenticated:
		return t.opt.Unauthenticated
	case shareDiscovery:
		return t.opt.MaxDiscovery
	}
	return t.opt.MaxConnections
}

// full says that every place of hosts that may use a drive is taken.
func (t *Target) full() error { return fmt.Errorf("%w: %d", errFull, t.opt.MaxConnections) }

// accept begins a connection, or closes it where the target has as many queues as it takes.
func (t *Target) accept(nc net.Conn) {
	t.mu.Lock()
	if t.closing || t.held[shareAdmitted] >= t.opt.MaxConnections {
		closing := t.closing
		t.mu.Unlock()
		if n, ok := t.refusals.Allow(); ok && !closing {
			t.log.Warn("connection refused", "from", nc.RemoteAddr().String(), "error", t.full(), "suppressed", n)
		}
		_ = nc.Close()
		return
	}
	c := newConnection(t, nc)
	c.peer = admission.Peer(nc.RemoteAddr())
	t.arrivals++
	c.arrival = t.arrivals
	t.conns[c] = struct{}{}
	t.held[shareOpening]++
	evicted := t.makeRoom(shareOpening, c)
	t.running.Add(1)
	t.mu.Unlock()
	t.evict(evicted)
	go func() {
		defer t.running.Done()
		c.serve()
		t.mu.Lock()
		delete(t.conns, c)
		t.held[c.share]--
		t.quiet.Broadcast()
		t.mu.Unlock()
	}()
}

// makeRoom chooses the connection that leaves where a share is over its limit: the oldest of the peer that holds most
// of the share, but not newest. nil: there is room. mu is held.
func (t *Target) makeRoom(s share, newest *connection) *connection {
	if t.held[s] <= t.limit(s) {
		return nil
	}
	count := map[string]int{}
	for c := range t.conns {
		if c.share == s {
			count[c.peer]++
		}
	}
	var out *connection
	for c := range t.conns {
		if c.share != s || c == newest {
			continue
		}
		if out == nil || count[c.peer] > count[out.peer] || count[c.peer] == count[out.peer] && c.arrival < out.arrival {
			out = c
		}
	}
	if out != nil {
		t.held[s]--
		t.held[shareLeaving]++
		out.share = shareLeaving
	}
	return out
}

// evict cuts off the connection that makeRoom chose, if any. mu is not held.
func (t *Target) evict(c *connection) {
	if c != nil {
		c.cut(errEvicted)
	}
}

// count moves a connection to another share, and makes room there. It fails with errFull where a share has none to
// make, and with errEvicted where the connection itself has made room for another. mu is not held.
func (t *Target) count(c *connection, to share) error {
	t.mu.Lock()
	switch {
	case c.share == shareLeaving:
		t.mu.Unlock()
		return errEvicted
	case c.share == to:
		t.mu.Unlock()
		return nil
	case to == shareAdmitted && t.held[to] >= t.limit(to):
		t.mu.Unlock()
		return t.full()
	}
	t.held[c.share]--
	c.share = to
	t.held[to]++
	evicted := t.makeRoom(to, c)
	t.mu.Unlock()
	t.evict(evicted)
	return nil
}

// admit lets the host of a queue that has just authenticated use it: the connection, and with the admin queue the
// association, take the places of those that have.
func (c *connection) admit() error {
	if c.queue == 0 {
		if err := c.assoc.ctrl.Admit(); err != nil {
			return err
		}
	}
	return c.target.count(c, shareAdmitted)
}
