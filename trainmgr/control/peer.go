package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/time/rate"

	"github.com/millrace/millrace/host/identity"
)

// allowed lists, for each method, the roles that may call it where identities are checked. What is not listed is an
// operator's.
var allowed = map[string][]identity.Role{
	"Heartbeat":   {identity.Node},
	"ListNodes":   {identity.Operator, identity.Launcher, identity.Node},
	"DrainNode":   {identity.Operator},
	"SubmitJob":   {identity.Launcher, identity.Operator},
	"ListJobs":    {identity.Launcher, identity.Operator},
	"GetJob":      {identity.Launcher, identity.Operator},
	"CancelJob":   {identity.Launcher, identity.Operator},
	"WatchJob":    {identity.Launcher, identity.Operator},
	"Decisions":   {identity.Launcher, identity.Operator},
	"Attach":      {identity.Launcher, identity.Operator},
	"Lease":       {identity.Launcher, identity.Operator},
	"Acknowledge": {identity.Launcher, identity.Operator},
	"Release":     {identity.Launcher, identity.Operator},
	"Checkpoint":  {identity.Launcher, identity.Operator},
	"ListMembers": {identity.Operator, identity.Control},
}

type peerKey struct{}

// peerOf returns who calls; the zero Identity where nobody is asked who they are.
func peerOf(ctx context.Context) identity.Identity {
	id, _ := ctx.Value(peerKey{}).(identity.Identity)
	return id
}

// guard checks a caller's role and rate before the call is read.
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
		g.refuse(w, r, connect.CodeResourceExhausted, fmt.Errorf("more than %.0f requests a second: ask less often", g.rates.limit))
		return
	}
	g.next.ServeHTTP(w, r.WithContext(ctx))
}

func (g *guard) refuse(w http.ResponseWriter, r *http.Request, code connect.Code, err error) {
	_ = g.errors.Write(w, r, connect.NewError(code, err)) // the caller is gone if it fails
}

// rates holds a token bucket a peer.
type rates struct {
	limit float64

	mu    sync.Mutex
	peers map[string]*rate.Limiter
	swept time.Time
}

// maxPeers bounds the buckets kept; peers beyond share one.
const maxPeers = 10_000

func newRates(limit float64) *rates { return &rates{limit: limit, peers: map[string]*rate.Limiter{}} }

func (r *rates) allow(peer string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.peers[peer]
	if l == nil {
		if len(r.peers) >= maxPeers {
			r.sweep(now)
			if len(r.peers) >= maxPeers {
				peer = "the others"
			}
		}
		if l = r.peers[peer]; l == nil {
			l = rate.NewLimiter(rate.Limit(r.limit), max(1, int(min(r.limit, 1e9))))
			r.peers[peer] = l
		}
	}
	return l.AllowN(now, 1)
}

// sweep forgets those that have not called for a second, whose buckets are full; once a second at most.
func (r *rates) sweep(now time.Time) {
	if now.Sub(r.swept) < time.Second {
		return
	}
	r.swept = now
	for p, l := range r.peers {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(r.peers, p)
		}
	}
}

// errOwner says that a job belongs to somebody else.
var errOwner = errors.New("the job belongs to another launcher")

// owner names who may use a job that this peer submits: launchers whose name begins the same up to the first dot, so that the
// ranks of one trainer on several hosts ("ads.host-3") share it. Empty: everybody.
func owner(id identity.Identity) string {
	if id.Role != identity.Launcher {
		return ""
	}
	name, _, _ := strings.Cut(id.Name, ".")
	return name
}

// mayUse returns an error unless the peer may use a job of the owner.
func mayUse(ctx context.Context, jobOwner string) error {
	id := peerOf(ctx)
	if id.Role != identity.Launcher || jobOwner == "" || owner(id) == jobOwner {
		return nil
	}
	return connect.NewError(connect.CodePermissionDenied, fmt.Errorf("%w: %s, you are %s", errOwner, jobOwner, id.Name))
}
