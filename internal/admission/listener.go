package admission

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/millrace/millrace/internal/lograte"
	"github.com/millrace/millrace/internal/wait"
)

// DefaultConnections is how many connections a server holds that says no other number.
const DefaultConnections = 1024

// Limit is how many connections a server holds over all its listeners, and a peer of them. Make it with NewLimit.
type Limit struct {
	most, peer int
	log        *slog.Logger
	refusalLog lograte.Limiter
	noFilesLog lograte.Limiter // It limits lines about file descriptors that the process lacks.

	mu    sync.Mutex
	held  int
	peers map[string]int
}

// NewLimit bounds connections: most in all, 0 means DefaultConnections; half of them and one more of a peer, but as
// many as there are of peers on this machine, where many processes share an address. log may be nil.
func NewLimit(most int, log *slog.Logger) *Limit {
	if most <= 0 {
		most = DefaultConnections
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Limit{most: most, peer: most/2 + 1, log: log, peers: map[string]int{}}
}

// Held is the number of connections that are held now.
func (l *Limit) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// Why a connection is refused.
var (
	errMost = errors.New("the server holds as many connections as it may")
	errPeer = errors.New("the peer holds as many connections as one peer may")
)

func (l *Limit) take(peer string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.held >= l.most:
		return errMost
	case l.peers[peer] >= l.peer && !onMachine(peer):
		return errPeer
	}
	l.held++
	l.peers[peer]++
	return nil
}

func (l *Limit) release(peer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held--
	if l.peers[peer]--; l.peers[peer] == 0 {
		delete(l.peers, peer)
	}
}

// Listen puts a listener under the limit. A connection beyond it is closed at once: its client sees that and comes
// again, and the clients of open connections are not disturbed.
func (l *Limit) Listen(from net.Listener) net.Listener {
	return &listener{Listener: from, limit: l, closed: make(chan struct{})}
}

type listener struct {
	net.Listener
	limit  *Limit
	once   sync.Once
	closed chan struct{}
}

// Close ends Accept too while it waits for file descriptors.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// longest is how long Accept waits at most before it tries again where the process has no file descriptors left.
const longest = time.Second

// Accept returns the next connection that there is room for.
func (l *listener) Accept() (net.Conn, error) {
	pauses := wait.Backoff{First: 5 * time.Millisecond, Longest: longest}
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if !passes(err) {
				return nil, err
			}
			pause := pauses.Next()
			if n, ok := l.limit.noFilesLog.Allow(); ok {
				l.limit.log.Error("cannot accept connections: those that are connected go on", "address",
					l.Addr().String(), "error", err,
					"connections", l.limit.Held(), "again_in", pause, "suppressed", n)
			}
			select {
			case <-time.After(pause):
				continue
			case <-l.closed:
				return nil, net.ErrClosed
			}
		}
		pauses.Reset()
		peer := Peer(c.RemoteAddr())
		if err := l.limit.take(peer); err != nil {
			if n, ok := l.limit.refusalLog.Allow(); ok {
				l.limit.log.Warn("connection refused", "from", peer, "address", l.Addr().String(), "error", err,
					"connections", l.limit.Held(), "suppressed", n)
			}
			_ = c.Close()
			continue
		}
		return &conn{Conn: c, limit: l.limit, peer: peer}, nil
	}
}

// passes reports whether an error of Accept is of this moment: the process or the machine has no file descriptors or
// memory for one more, or the connection has ended before it was accepted.
func passes(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// conn gives its place back when it is closed.
type conn struct {
	net.Conn
	limit *Limit
	peer  string
	once  sync.Once
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.limit.release(c.peer) })
	return err
}
