package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/etcdhttp"
	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"google.golang.org/grpc"

	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/lograte"
)

// secureServers are the listeners of an embedded member that speak TLS: one for the other members and, if
// Options.ClientURL wants it, one for clients. They are not etcd's own, because etcd accepts every certificate of the
// authority, or a list of common names: it cannot be given a role.
type secureServers struct {
	logger   *slog.Logger
	refusals lograte.Limiter
	wg       sync.WaitGroup // wg counts the goroutines that serve.

	peers        net.Listener // nil: etcd serves the other members in clear, or there are none
	peerServer   *http.Server
	peerHandler  atomic.Pointer[http.Handler] // nil until etcd has started
	clients      net.Listener                 // nil: etcd serves clients in clear, or not at all
	clientTLS    *tls.Config
	clientServer *grpc.Server // nil until etcd has started
}

// Limits of the listener for the other members. A listener of etcd has the same for its connections.
const (
	peerHeaderTime = 10 * time.Second
	peerReadTime   = 5 * time.Minute
	peerCloseTime  = time.Second
)

// listenSecure opens the listeners. Until serve is called, members that call are asked to call again.
// own is this member's URL.
func (o *Options) listenSecure(own url.URL) (*secureServers, error) {
	s := &secureServers{logger: o.Logger}
	if err := s.listenPeers(o, own); err != nil {
		return nil, fmt.Errorf("listener for the other members at %s: %w", own.String(), err)
	}
	if err := s.listenClients(o); err != nil {
		return nil, errors.Join(fmt.Errorf("listener for clients at %s: %w", o.ClientURL, err), s.end(nil))
	}
	return s, nil
}

// ownIdentity returns the files of this member's identity, which needs the role control.
func (o *Options) ownIdentity() (identity.Options, error) {
	files := identity.Options{Cert: o.Cert, Key: o.Key, CA: o.CA}
	id, err := files.Own()
	if err == nil && id.Role != identity.Control {
		err = fmt.Errorf("%w: %s is of %s, and the other members accept only the role %s: "+
			"issue one with millrace pki issue --role %s --name %s --host HOST",
			identity.ErrPeer, o.Cert, id, identity.Control, identity.Control, o.Name)
	}
	return files, err
}

func (s *secureServers) listenPeers(o *Options, own url.URL) error {
	if len(o.Peers) == 0 || own.Scheme != "https" {
		return nil
	}
	files, err := o.ownIdentity()
	if err != nil {
		return err
	}
	conf, err := files.Server()
	if err != nil {
		return err
	}
	s.peers, err = transport.NewListenerWithOpts(own.Host, "http",
		transport.WithTimeout(rafthttp.ConnReadTimeout, rafthttp.ConnWriteTimeout))
	if err != nil {
		return err
	}
	s.peerServer = &http.Server{
		Handler: http.HandlerFunc(s.servePeer), TLSConfig: conf,
		ReadHeaderTimeout: peerHeaderTime, ReadTimeout: peerReadTime,
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
	s.wg.Go(func() {
		if err := s.peerServer.ServeTLS(s.peers, "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("the listener for the other members failed", "error", err)
		}
	})
	return nil
}

// servePeer passes a request of another member to etcd. A refusal has status 401, since etcd ends a member that
// receives 403: for etcd that status means that the member was removed.
func (s *secureServers) servePeer(w http.ResponseWriter, r *http.Request) {
	if err := requireControl(r.TLS); err != nil {
		s.logRefusal(r.RemoteAddr, err)
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	handler := s.peerHandler.Load()
	if handler == nil {
		http.Error(w, "this member is starting: call again", http.StatusServiceUnavailable)
		return
	}
	(*handler).ServeHTTP(w, r)
}

func (s *secureServers) listenClients(o *Options) error {
	u, err := url.Parse(o.ClientURL)
	if err != nil || u.Scheme != "https" {
		return err
	}
	if o.Cert == "" {
		return errors.New("it wants TLS: give a certificate, its key and the CA, or a URL with unix or http")
	}
	files, err := o.ownIdentity()
	if err != nil {
		return err
	}
	s.clientTLS, err = files.ServerOf(func(state tls.ConnectionState) error {
		err := requireControl(&state)
		if err != nil {
			s.logRefusal(u.Host, err)
		}
		return err
	}, "h2")
	if err != nil {
		return err
	}
	s.clients, err = net.Listen("tcp", u.Host)
	return err
}

// requireControl returns nil if the connection's other side has the role control.
func requireControl(state *tls.ConnectionState) error {
	err := identity.Require(state, identity.Control)
	if state == nil {
		err = fmt.Errorf("%w: the connection has no TLS", identity.ErrPeer)
	}
	if err != nil {
		err = fmt.Errorf("%w: only members of the control plane speak with etcd: issue a certificate with "+
			"millrace pki issue --role %s", err, identity.Control)
	}
	return err
}

// logRefusal logs that a caller was refused at an address.
func (s *secureServers) logRefusal(address string, err error) {
	if suppressed, ok := s.refusals.Allow(); ok {
		s.logger.Warn("a caller of etcd was refused", "peer", address, "suppressed", suppressed, "error", err)
	}
}

// serve connects the listeners with an etcd that has started.
func (s *secureServers) serve(e *embed.Etcd) {
	if s.peers != nil {
		handler := etcdhttp.NewPeerHandler(e.GetLogger(), e.Server)
		s.peerHandler.Store(&handler)
	}
	if s.clients != nil {
		server := v3rpc.Server(e.Server, s.clientTLS, nil)
		s.clientServer = server
		s.wg.Go(func() {
			if err := server.Serve(s.clients); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
				s.logger.Error("the listener for clients of etcd failed", "error", err)
			}
		})
	}
}

// end ends etcd, if it has started, and the listeners. Calls of clients end before etcd, and the streams of the other
// members end with etcd.
func (s *secureServers) end(e *embed.Etcd) error {
	var err error
	switch {
	case s == nil:
	case s.clientServer != nil:
		s.clientServer.Stop() // closes the listener
	case s.clients != nil:
		err = s.clients.Close()
	}
	if e != nil {
		e.Close()
	}
	if s == nil {
		return err
	}
	if s.peerServer != nil {
		ctx, cancel := context.WithTimeout(context.Background(), peerCloseTime)
		defer cancel()
		if stopped := s.peerServer.Shutdown(ctx); errors.Is(stopped, context.DeadlineExceeded) {
			err = errors.Join(err, s.peerServer.Close())
		}
	}
	s.wg.Wait()
	return err
}
