package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node/delivery"
	"github.com/millrace/millrace/host/node/splits"
)

// server is the node's HTTP server. It notices when a connection is closed, because splits whose clients are all gone
// are closed soon.
type server struct {
	http    *http.Server
	leave   func(*splits.Peer)
	peers   sync.Map // peers has the *splits.Peer of each net.Conn.
	log     *slog.Logger
	running sync.WaitGroup
}

// newServer makes a server whose requests end with ctx.
func newServer(ctx context.Context, handler http.Handler, leave func(*splits.Peer), log *slog.Logger) *server {
	s := &server{leave: leave, log: log}
	s.http = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		WriteTimeout:      24 * time.Hour, // each response sets its own; this replaces the one that it left on the connection
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    apiv1.MaxPartitionHeader + 16<<10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       s.enter,
		ConnState:         s.watchState,
	}
	return s
}

// enter remembers a connection and puts it into the context of its requests.
func (s *server) enter(ctx context.Context, c net.Conn) context.Context {
	p := &splits.Peer{}
	s.peers.Store(c, p)
	return delivery.WithPeer(ctx, p)
}

// watchState notices the end of a connection.
func (s *server) watchState(c net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	if p, ok := s.peers.LoadAndDelete(c); ok {
		s.leave(p.(*splits.Peer))
	}
}

// serve serves the listeners until close.
func (s *server) serve(list []net.Listener) {
	for _, l := range list {
		s.running.Add(1)
		go func() {
			defer s.running.Done()
			if err := s.http.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
				s.log.Error("serve", "address", l.Addr().String(), "error", err)
			}
		}()
	}
}

// close closes the listeners and the connections, and returns when nothing is served any more.
func (s *server) close() error {
	err := s.http.Close()
	s.running.Wait()
	return err
}
