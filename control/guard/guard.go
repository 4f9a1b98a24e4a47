package guard

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/host/identity"
)

// allowed lists, for each method, the roles that may call it where identities are checked. A method that is not listed
// is an operator's.
var allowed = map[string][]identity.Role{
	"Heartbeat":     {identity.Node, identity.Launcher}, // a launcher for workers of its own CPUs alone
	"Locate":        {identity.Node, identity.Launcher}, // a launcher for jobs of its owner alone
	"ListNodes":     {identity.Operator, identity.Launcher, identity.Node},
	"DrainNode":     {identity.Operator},
	"ListCopies":    {identity.Operator, identity.Launcher, identity.Node},
	"DescribeData":  {identity.Launcher, identity.Operator},
	"SubmitJob":     {identity.Launcher, identity.Operator},
	"ListJobs":      {identity.Launcher, identity.Operator},
	"GetJob":        {identity.Launcher, identity.Operator},
	"CancelJob":     {identity.Launcher, identity.Operator},
	"WatchJob":      {identity.Launcher, identity.Operator},
	"Decisions":     {identity.Launcher, identity.Operator},
	"Attach":        {identity.Launcher, identity.Operator},
	"Lease":         {identity.Launcher, identity.Operator},
	"Acknowledge":   {identity.Launcher, identity.Operator},
	"Release":       {identity.Launcher, identity.Operator},
	"Checkpoint":    {identity.Launcher, identity.Operator},
	"PutVocabulary": {identity.Launcher, identity.Operator},
	// a launcher for workers of its own CPUs, and files of jobs of its owner alone
	"ReadVocabulary":    {identity.Node, identity.Control, identity.Operator, identity.Launcher},
	"ShareVocabularies": {identity.Control},
	"ListMembers":       {identity.Operator, identity.Control},
}

type peerKey struct{}

// Peer returns the identity of the caller; the zero Identity where callers are not asked for one.
func Peer(ctx context.Context) identity.Identity {
	id, _ := ctx.Value(peerKey{}).(identity.Identity)
	return id
}

// New wraps next: before next reads a call, it checks the caller's role, if tls is set and callers show their
// identity, and the caller's rate, which is bounded to rate requests a second of one peer.
func New(next http.Handler, tls bool, rate float64) http.Handler {
	return &guard{next: next, tls: tls, rates: newRates(rate), errors: connect.NewErrorWriter()}
}

type guard struct {
	next   http.Handler
	tls    bool
	rates  *rates
	errors *connect.ErrorWriter
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, peer := r.Context(), ""
	if g.tls {
		roles, ok := allowed[path.Base(r.URL.Path)]
		if !ok {
			roles = []identity.Role{identity.Operator}
		}
		if err := identity.Require(r.TLS, roles...); err != nil {
			g.refuse(w, r, connect.CodePermissionDenied, err)
			return
		}
		id, err := identity.Peer(r.TLS)
		if err != nil {
			g.refuse(w, r, connect.CodeUnauthenticated, err)
			return
		}
		ctx, peer = context.WithValue(ctx, peerKey{}, id), id.String()
	} else if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		peer = host
	}
	if !g.rates.allow(peer, time.Now()) {
		g.refuse(w, r, connect.CodeResourceExhausted, fmt.Errorf("more than %.0f requests a second: ask less often",
			g.rates.limit))
		return
	}
	g.next.ServeHTTP(w, r.WithContext(ctx))
}

func (g *guard) refuse(w http.ResponseWriter, r *http.Request, code connect.Code, err error) {
	_ = g.errors.Write(w, r, connect.NewError(code, err)) // it fails only where the caller is gone
}

// OnLoopback refuses callers of other machines.
func OnLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err == nil && !net.ParseIP(host).IsLoopback() {
			http.Error(w, "profiles are for callers on this machine", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
