package control

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/millrace/millrace/internal/wait"
)

// The death of a leader's process shows in etcd when its lease runs out, seconds later, and later still when etcd's
// own leader died with it. If the host lives on and refuses connections, the other members need not wait: they take
// the leader's lease away. This is safe: if the leader lives after all, the fence refuses its writes, and the
// mistake costs only an election.

// refusalsToDepose is how many connections in a row must be refused before a leader is deposed.
const refusalsToDepose = 2

// deposeDeadLeader deposes a leader that refuses connections, as long as this member stands for election.
func (s *Server) deposeDeadLeader(ctx context.Context) {
	every := max(s.o.LeaderTTL/5, 100*time.Millisecond)
	refused := 0
	for wait.Sleep(ctx, every) == nil {
		url, _ := s.store.Leader()
		if url == "" || url == s.url {
			refused = 0
			continue
		}
		err := tryConnect(ctx, url, every)
		switch {
		case err == nil:
			s.reached.Store(url)
			refused = 0
		case s.reached.Load() != url: // this member never reached the leader: the URL may be wrong
			refused = 0
		case !errors.Is(err, syscall.ECONNREFUSED):
			refused = 0 // the leader may be slow, or only this member may be cut off from it
		default:
			refused++
		}
		if refused < refusalsToDepose {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, every)
		gone, err := s.store.Depose(asking, url)
		cancel()
		if err != nil { // etcd itself may be electing: the next round tries again
			s.logger.Debug("take the leader's lease away", "leader", url, "error", err)
			continue
		}
		if gone {
			s.logger.Warn("the leader refuses connections: its lease is taken away", "leader", url)
		}
		s.reached.Store("")
		refused = 0
	}
}

// tryConnect connects to a member's URL and closes the connection.
func tryConnect(ctx context.Context, at string, most time.Duration) error {
	network, addr := "unix", strings.TrimPrefix(at, "unix:")
	if !strings.HasPrefix(at, "unix:") {
		u, err := url.Parse(at)
		if err != nil {
			return err
		}
		network, addr = "tcp", u.Host
		if u.Port() == "" {
			port := "80"
			if u.Scheme == "https" {
				port = "443"
			}
			addr = net.JoinHostPort(u.Hostname(), port)
		}
	}
	c, err := (&net.Dialer{Timeout: most}).DialContext(ctx, network, addr)
	if err != nil {
		return err
	}
	return c.Close()
}
