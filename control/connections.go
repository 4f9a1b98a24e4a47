package control

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/control/presence"
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

// connection is what a call's context holds of the connection on which it came.
type connection struct {
	number      presence.Conn
	thisMachine bool // The caller runs on this machine.
}

// opened is an http.Server's ConnContext.
func (c *connections) opened(ctx context.Context, conn net.Conn) context.Context {
	n := presence.Conn(c.last.Add(1))
	c.open.Store(conn, n)
	c.live.Store(n, struct{}{})
	return context.WithValue(ctx, connKey{}, connection{n, fromThisMachine(conn)})
}

// fromThisMachine reports whether the other end of a connection is on this machine: a unix socket, a loopback address,
// or the address at which the connection came in.
func fromThisMachine(conn net.Conn) bool {
	remote, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return conn.RemoteAddr().Network() == "unix"
	}
	local, ok := conn.LocalAddr().(*net.TCPAddr)
	return remote.IP.IsLoopback() || ok && remote.IP.Equal(local.IP)
}

// calledFromThisMachine reports whether a call came from this machine. A call without a connection comes from this
// process.
func calledFromThisMachine(ctx context.Context) bool {
	c, ok := ctx.Value(connKey{}).(connection)
	return !ok || c.thisMachine
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
	at, _ := ctx.Value(connKey{}).(connection)
	if _, open := c.live.Load(at.number); !open {
		return 0
	}
	return at.number
}

// connState informs the leader when a connection is closed.
func (s *Server) connState(conn net.Conn, to http.ConnState) {
	n, ok := s.connections.closed(conn, to)
	if !ok {
		return
	}
	if l := s.leading.Load(); l != nil {
		l.mu.Lock()
		l.mu.machine.ConnectionClosed(n, time.Now())
		l.mu.Unlock()
	}
}
