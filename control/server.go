package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/store"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/admission"
	"github.com/millrace/millrace/internal/httpbody"
	"github.com/millrace/millrace/internal/wait"
)

// Server is one member of the control plane.
type Server struct {
	o       Options
	logger  *slog.Logger
	store   *store.Store
	http    *http.Server
	nodes   *http.Client // to storage nodes
	url     string
	metrics *metrics
	memory  *httpbody.Budget // memory bounds what all calls take together.

	jobFiles *jobFileShare // nil: the member keeps none

	connections connections

	stop    context.CancelFunc
	wg      sync.WaitGroup
	closing sync.Once
	closed  error // the result of Close

	backingUp chan struct{} // capacity 1: full while a backup is being sent

	leading atomic.Pointer[leader] // nil: another member leads, or no member leads
	// reached holds a string: the URL of the last leader that accepted a connection from this member, or "" after this
	// member has deposed that leader.
	reached atomic.Value
}

// Start starts a member: its etcd, its listener, its candidacy. It returns when etcd answers and the listener is
// open; the context bounds this wait. Close ends the member.
func Start(ctx context.Context, o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := o.Identity.Server()
	if err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	nodes, err := identity.HTTPClientOf(o.Identity, identity.AcceptNode)
	if err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	if err := join(ctx, &o); err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	l, err := identity.Listen(ctx, o.Listen, tlsConfig != nil, o.Trusted)
	if err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	files, err := admission.RaiseFiles()
	if err != nil {
		o.Logger.Warn("the process has fewer file descriptors than it might", "error", err)
	}
	// The limit of connections leaves file descriptors for etcd, its members and its data.
	limit := admission.NewLimit(admission.Connections(o.MaxConnections, files), o.Logger)
	st, err := store.Open(ctx, store.Options{
		Data: o.Data, Name: o.Name, Peers: o.Peers, Join: len(o.Join) > 0, External: o.Etcd, ClientURL: o.EtcdClient,
		Quota: o.EtcdQuota,
		Cert:  o.Identity.Cert, Key: o.Identity.Key, CA: o.Identity.CA,
		TTL: o.LeaderTTL, Tick: o.Tick, Election: o.Election, Logger: o.Logger,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start control plane: %w", err), l.Close())
	}
	s := &Server{o: o, logger: o.Logger, store: st, nodes: nodes, url: o.Advertise, backingUp: make(chan struct{}, 1),
		memory: httpbody.NewBudget(o.RequestMemory)}
	if s.url == "" {
		s.url = urlOf(l, o.Listen, tlsConfig != nil)
	}
	if s.metrics, err = newMetrics(s, o.Registry); err != nil {
		return nil, errors.Join(fmt.Errorf("start control plane: %w", err), l.Close(), st.Close())
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s.http = &http.Server{
		Handler: s.handler(tlsConfig != nil), TLSConfig: tlsConfig, Protocols: protocols,
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog:    slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		ConnContext: s.connections.opened, ConnState: s.connState,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 64, MaxReceiveBufferPerConnection: 256 << 10,
			MaxReceiveBufferPerStream: 128 << 10},
	}
	running, stop := context.WithCancel(context.Background())
	s.stop = stop
	if err := s.openVocabularies(running); err != nil {
		stop()
		s.metrics.unregister()
		return nil, errors.Join(fmt.Errorf("start control plane: %w", err), l.Close(), st.Close())
	}
	s.wg.Go(func() { s.promote(running) })
	s.wg.Add(3)
	go func() {
		defer s.wg.Done()
		s.deposeDeadLeader(running)
	}()
	go func() {
		defer s.wg.Done()
		serve := s.http.Serve
		if tlsConfig != nil {
			serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
		}
		if err := serve(limit.Listen(l)); !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("the listener failed", "error", err)
		}
	}()
	go func() {
		defer s.wg.Done()
		s.campaignLoop(running)
	}()
	return s, nil
}

// urlOf returns the URL of a listener.
func urlOf(l net.Listener, listen string, secure bool) string {
	if strings.HasPrefix(listen, "unix:") {
		return listen
	}
	if secure {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

// URL returns the URL of this member.
func (s *Server) URL() string { return s.url }

// Leads reports whether this member leads now.
func (s *Server) Leads() bool { return s.leading.Load() != nil }

// Stopped returns a channel that is closed when the member's etcd has ended by itself because the member was removed
// or failed. The caller then calls Close.
func (s *Server) Stopped() <-chan struct{} { return s.store.Stopped() }

// Close stops leading, so that another member may lead at once, and ends the member. Further calls return the result of
// the first.
func (s *Server) Close() error {
	s.closing.Do(func() { s.closed = s.end() })
	return s.closed
}

// end carries out Close once.
func (s *Server) end() error {
	s.stop()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close() // ends streams that go on
	}
	s.wg.Wait()
	s.metrics.unregister()
	s.nodes.CloseIdleConnections()
	return errors.Join(err, s.store.Close())
}

// campaignLoop campaigns, leads, and campaigns again.
func (s *Server) campaignLoop(ctx context.Context) {
	for ctx.Err() == nil {
		term, err := s.store.Campaign(ctx, s.url)
		if err != nil {
			if ctx.Err() == nil {
				s.logger.Warn("the campaign failed; trying again", "error", err)
				s.roomToLead(ctx, err)
				_ = wait.Sleep(ctx, time.Second)
			}
			continue
		}
		if err := s.leadTerm(ctx, term); err != nil {
			s.logger.Error("leading ended", "fence", term.Fence(), "error", err)
			_ = wait.Sleep(ctx, time.Second)
		}
		resign, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		if err := term.Resign(resign); err != nil {
			s.logger.Debug("resign", "error", err)
		}
		cancel()
	}
}

// roomToLead makes room if a full etcd prevents an election: it compacts the history and deletes no record.
func (s *Server) roomToLead(ctx context.Context, err error) {
	if !errors.Is(err, store.ErrNoSpace) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := s.store.MakeRoom(ctx, func(context.Context) error { return nil }); err != nil && ctx.Err() == nil {
		s.logger.Error("etcd is full and nobody leads: give it a larger quota", "error", err)
	}
}

// leadTerm leads until the term or the context ends. It returns an error if the member could not take over.
func (s *Server) leadTerm(ctx context.Context, term *store.Term) error {
	l, err := newLeader(ctx, s, term)
	if err != nil {
		return fmt.Errorf("take over: %w", err)
	}
	s.leading.Store(l)
	s.logger.Info("leading", "from", "candidate", "to", "leader", "fence", term.Fence(), "jobs", l.active())
	select {
	case <-ctx.Done():
	case <-term.Done():
	case <-l.fenced:
	}
	s.leading.Store(nil)
	l.close()
	s.logger.Info("not leading any more", "from", "leader", "to", "candidate", "fence", term.Fence())
	return nil
}

// leader returns the leader, or the error of a member that does not lead.
func (s *Server) leader() (*leader, error) {
	if l := s.leading.Load(); l != nil {
		return l, nil
	}
	return nil, s.notLeader()
}

func (s *Server) notLeader() error {
	url, _ := s.store.Leader()
	text := "this member does not lead, and nobody is known to: ask again in a moment"
	if url == s.url {
		url = "" // this member has just been elected, or has just stopped leading
	}
	if url != "" {
		text = "this member does not lead: ask " + url
	}
	err := connect.NewError(connect.CodeFailedPrecondition, errors.New(text))
	if d, derr := connect.NewErrorDetail(&apiv1.NotLeader{LeaderUrl: url}); derr == nil {
		err.AddDetail(d)
	}
	return err
}
