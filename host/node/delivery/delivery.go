package delivery

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/millrace/millrace/host"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node/errorcode"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/host/ticket"
	"github.com/millrace/millrace/internal/lograte"
	"github.com/millrace/millrace/sdk/dataset"
)

// Counter counts the fragments that a Server delivers. Its methods may be called from any number of goroutines.
type Counter interface {
	// Delivered counts a fragment that was written, and the time since its request. first reports whether the fragment
	// has the first row of its mini-batch, as a whole mini-batch has.
	Delivered(drive string, rows int, first bool, bytes int64, took time.Duration)
	// Refused counts a request that was answered with an error, by the error's code.
	Refused(code string)
	// CutOff counts a response that its client did not take whole.
	CutOff()
}

// Options are the things that a Server needs of its node. All but Tickets are required.
type Options struct {
	Splits *splits.Table
	Plan   func(job dataset.Digest, epoch uint64) (*dataset.Plan, error) // Plan returns the plan of a prepared job.
	Known  func(drive string) error                                      // nil if the node has a drive of the name
	// Tickets checks the tickets of leases. nil: the node has no control plane, so that there are no leases.
	Tickets *ticket.Verifier
	// UnknownKey asks the control plane for the key of a ticket that no known key has signed. It must not block.
	UnknownKey func()
	// WriteTime is how long writing a response may take, beside a second for every 16 MiB.
	WriteTime time.Duration
	Counter   Counter
	Log       *slog.Logger
}

// Server answers requests for mini-batches. It is safe for concurrent use.
type Server struct {
	o            Options
	refusals     lograte.Limiter // refusals bounds the log: the client decides how many tickets are refused.
	keyQuestions lograte.Limiter // keyQuestions bounds the calls of UnknownKey.
}

// New makes a Server.
func New(o Options) *Server {
	return &Server{o: o, refusals: lograte.Limiter{Burst: 1}, keyQuestions: lograte.Limiter{Burst: 1}}
}

// mayTake are the roles that may take mini-batches.
var mayTake = []identity.Role{identity.Launcher, identity.Operator}

// ServeHTTP answers GET and HEAD /v1/minibatch.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.serve(w, r); err != nil {
		errorcode.Write(w, err)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) error {
	if err := identity.Require(r.TLS, mayTake...); err != nil {
		return err
	}
	begin := time.Now()
	q, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	response, err := s.admit(w, r, q)
	if err != nil {
		s.o.Counter.Refused(errorcode.Of(err).String())
		return err
	}
	fragment := response.MiniBatch()
	rows, first := fragment.Rows, fragment.Fragment.Index == 0
	n, err := s.write(w, r, response)
	if err != nil {
		return err
	}
	if n > 0 {
		s.o.Counter.Delivered(q.drive, rows, first, n, time.Since(begin))
	}
	return nil
}

// admit checks the request's ticket and gets the fragment that it asks for, made before or made now.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, q query) (*splits.Response, error) {
	owner, err := s.checkTicket(r, &q)
	if err != nil {
		return nil, err
	}
	if err := s.o.Known(q.drive); err != nil {
		return nil, err
	}
	plan, err := s.o.Plan(q.job, q.epoch)
	if err != nil {
		return nil, err
	}
	f, err := plan.Fragment(q.number)
	if err != nil {
		return nil, err
	}
	split, err := plan.Split(f.Split)
	if err != nil {
		return nil, err
	}
	control := http.NewResponseController(w)
	return s.o.Splits.Get(r.Context(), splits.Request{
		Key:   splits.Key{Job: q.job, Epoch: q.epoch, Drive: q.drive, Place: split.Position},
		Split: split, Number: q.number, Until: q.until, Peer: peerOf(r.Context()), Owner: owner,
	}, func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) }) // a deadline in the past ends the writing
}

// checkTicket checks the ticket of a request, and lets no fragment past the ticket's lease be made ahead. It
// returns the owner in whose account the split counts. Without a control plane there are no leases and no tickets.
func (s *Server) checkTicket(r *http.Request, q *query) (owner string, err error) {
	if s.o.Tickets == nil {
		return "", nil
	}
	var peer identity.Identity
	if r.TLS != nil {
		if peer, err = identity.Peer(r.TLS); err != nil {
			return "", err
		}
	}
	ask := ticket.Ask{Job: q.job, Epoch: q.epoch, Drive: q.drive, Number: q.number}
	t, err := s.o.Tickets.Check(r.Header.Get(apiv1.TicketHeader), peer, &ask)
	if err != nil {
		s.refuseTicket(r, q, peer, err)
		return "", err
	}
	if t == nil {
		return "", nil
	}
	q.until = min(q.until, t.To)
	return t.Owner, nil
}

// refuseTicket logs a refused ticket. If the ticket may be good, but the node lacks its key, refuseTicket asks for
// the key.
func (s *Server) refuseTicket(r *http.Request, q *query, peer identity.Identity, err error) {
	if errors.Is(err, ticket.ErrKey) {
		if _, ok := s.keyQuestions.Allow(); ok {
			s.o.UnknownKey() // the leader's answer brings the key, if there is one
		}
	}
	if suppressed, ok := s.refusals.Allow(); ok {
		s.o.Log.Warn("mini-batch refused", "digest", host.ShortDigest(q.job), "number", q.number, "drive", q.drive,
			"peer", r.RemoteAddr, "identity", peer.String(), "not_logged", suppressed, "error", err)
	}
}

// peerKey is the key of a connection in the context of its requests.
type peerKey struct{}

// WithPeer returns a context for the requests of a connection.
func WithPeer(ctx context.Context, p *splits.Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// peerOf returns the connection of a request, or nil if it is not known.
func peerOf(ctx context.Context) *splits.Peer {
	p, _ := ctx.Value(peerKey{}).(*splits.Peer)
	return p
}
