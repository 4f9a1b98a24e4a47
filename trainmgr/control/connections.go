package control

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/trainmgr/control/presence"
)

// connections numbers the connections that a member has accepted, so that the leader learns when a connection is
// closed.
type connections struct {
	last atomic.Uint64
	open sync.Map // The keys are net.Conn, and the values presence.Conn.
	live sync.Map // The keys are presence.Conn.
}

// connKey is the key of the connection in a call's context.
type connKey struct{}

// opened is an http.Server's ConnContext.
func (c *connections) opened(ctx context.Context, conn net.Conn) context.Context {
	n := presence.Conn(c.last.Add(1))
	c.open.Store(conn, n)
	c.live.Store(n, struct{}{})
	return context.WithValue(ctx, connKey{}, n)
}

// closed returns the number of a connection if an http.Server's ConnState reports that the connection is closed. It
// reports false for a connection that is open or has no number.
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

// of returns the connection of a call. It returns 0 if the connection is closed by now or has no number.
func (c *connections) of(ctx context.Context) presence.Conn {
	n, _ := ctx.Value(connKey{}).(presence.Conn)
	if _, open := c.live.Load(n); !open {
		return 0
	}
	return n
}

// connState informs the leader when a connection is closed.
func (s *Server) connState(conn net.Conn, to http.ConnState) {
	n, ok := s.connections.closed(conn, to)
	if !ok {
		return
	}
	if l := s.leading.Load(); l != nil {
		l.mu.Lock()
		l.lives.ConnectionClosed(n, time.Now())
		l.mu.Unlock()
	}
}
