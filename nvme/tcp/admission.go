package tcp

import (
	"errors"
	"fmt"
	"net"

	"github.com/millrace/millrace/internal/admission"
)

// Reasons to cut a connection that makes room for another, and to refuse one for which there is no room.
var (
	errEvicted = errors.New("it made room for a newer connection, as its share of the connections is full")
	errFull    = errors.New("the target has as many connections as it takes")
)

// limitOfState returns how many connections may be in a state.
func (t *Target) limitOfState(s state) int {
	switch s {
	case stateOpening:
		return t.opt.MaxOpening
	case stateUnauthenticated:
		return t.opt.Unauthenticated
	case stateDiscovery:
		return t.opt.MaxDiscovery
	}
	return t.opt.MaxConnections
}

// fullError returns the error for a target that has MaxConnections connections.
func (t *Target) fullError() error { return fmt.Errorf("%w: %d", errFull, t.opt.MaxConnections) }

// acceptConnection begins a connection, or closes it where the target has as many queues as it may have.
func (t *Target) acceptConnection(nc net.Conn) {
	t.mu.Lock()
	if t.closing || t.held[stateAdmitted] >= t.opt.MaxConnections {
		closing := t.closing
		t.mu.Unlock()
		if n, ok := t.refusals.Allow(); ok && !closing {
			t.log.Warn("connection refused", "from", nc.RemoteAddr().String(), "error", t.fullError(), "suppressed", n)
		}
		_ = nc.Close()
		return
	}
	c := newConnection(t, nc)
	c.peer = admission.Peer(nc.RemoteAddr())
	t.arrivals++
	c.arrival = t.arrivals
	t.conns[c] = struct{}{}
	t.held[stateOpening]++
	evicted := t.chooseToEvict(stateOpening, c)
	t.running.Add(1)
	t.mu.Unlock()
	t.evictConnection(evicted)
	go func() {
		defer t.running.Done()
		c.serveUntilEnd()
		t.mu.Lock()
		delete(t.conns, c)
		t.transition(c, eventEnd)
		t.quiet.Broadcast()
		t.mu.Unlock()
	}()
}

// chooseToEvict chooses the connection that leaves where more connections are in a state than its limit allows: the
// oldest of the peer that has most of them, but not newest. It returns nil where there is room. mu is held.
func (t *Target) chooseToEvict(s state, newest *connection) *connection {
	if t.held[s] <= t.limitOfState(s) {
		return nil
	}
	count := map[string]int{}
	for c := range t.conns {
		if c.state == s {
			count[c.peer]++
		}
	}
	var chosen *connection
	for c := range t.conns {
		if c.state != s || c == newest {
			continue
		}
		if chosen == nil || count[c.peer] > count[chosen.peer] ||
			count[c.peer] == count[chosen.peer] && c.arrival < chosen.arrival {
			chosen = c
		}
	}
	if chosen != nil {
		t.transition(chosen, eventEvict)
	}
	return chosen
}

// evictConnection cuts off the connection that chooseToEvict chose, if any. mu is not held.
func (t *Target) evictConnection(c *connection) {
	if c != nil {
		c.cutConnection(errEvicted)
	}
}

// advanceState changes a connection's state on an event, and makes room among those that are in its new state. It fails
// with errFull where there is no room to make, and with errEvicted where the connection itself has made room for
// another. mu is not held.
func (t *Target) advanceState(c *connection, on event) error {
	t.mu.Lock()
	before := c.state
	next, ok := transitions.Next(before, on)
	switch {
	case before == stateEvicted:
		t.mu.Unlock()
		return errEvicted
	case !ok:
		t.mu.Unlock()
		return fmt.Errorf("event %q is not possible for a connection that is %s", on, before)
	case next == before:
		t.mu.Unlock()
		return nil
	case next == stateAdmitted && t.held[next] >= t.limitOfState(next):
		t.mu.Unlock()
		return t.fullError()
	}
	t.transition(c, on)
	evicted := t.chooseToEvict(next, c)
	t.mu.Unlock()
	t.evictConnection(evicted)
	return nil
}

// admitHost lets the host of a queue that has just authenticated use it: the connection, and with the admin queue the
// association, take one of the places of admitted hosts.
func (c *connection) admitHost() error {
	if c.queue == 0 {
		if err := c.association.ctrl.Admit(); err != nil {
			return err
		}
	}
	return c.target.advanceState(c, eventAuthenticated)
}
