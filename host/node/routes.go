package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node/errorcode"
	"github.com/millrace/millrace/host/node/partitions"
	"github.com/millrace/millrace/internal/admission"
	"github.com/millrace/millrace/internal/httpbody"
)

// The roles that each call requires. A connection without TLS passes every check (identity.Require). Package delivery
// decides which roles may take mini-batches.
var (
	mayOperate = []identity.Role{identity.Control, identity.Operator}
	mayLook    = []identity.Role{identity.Control, identity.Operator, identity.Launcher, identity.Node}
	mayCopy    = []identity.Role{identity.Node, identity.Operator, identity.Control}
)

// routes are the node's handlers, and the limits of their requests.
type routes struct {
	service  *service
	delivery http.Handler
	store    *partitions.Store
	metrics  http.Handler
	unready  func() string // why the node takes no splits; "" if it does
	limits   LimitConfig
	log      *slog.Logger
}

// handler returns the handler of everything that the node serves.
func (r *routes) handler() http.Handler {
	mux := http.NewServeMux()
	path, rpc := apiv1connect.NewNodeHandler(r.service,
		connect.WithReadMaxBytes(int(r.limits.RequestBytes)),
		connect.WithInterceptors(r.service.interceptor()),
		connect.WithRecover(r.recoverCall))
	messages := httpbody.NewBudget(int64(r.limits.RequestMemory)).Messages(httpbody.MessageOptions{
		Most: func(string) int64 { return int64(r.limits.RequestBytes) }, Peer: callerName, Logger: r.log,
	}, rpc)
	mux.Handle(path, withTLS(messages))
	mux.Handle("GET "+apiv1.MiniBatchPath, r.delivery)
	mux.HandleFunc("GET "+apiv1.PartitionPath, allow(mayCopy, r.store.Serve))
	mux.HandleFunc("PUT "+apiv1.PartitionPath, allow(mayOperate, r.store.Receive))
	mux.HandleFunc("GET /readyz", r.serveReady)
	mux.Handle("GET /metrics", r.metrics)
	// A body that no handler reads is bounded, too: the server reads it before the next request of the connection.
	return httpbody.Within(httpbody.Time, newRequestLimit(r.limits.RequestsPerSecond).wrap(mux))
}

// recoverCall turns a panic of a call into an error of the call.
func (r *routes) recoverCall(_ context.Context, spec connect.Spec, _ http.Header, p any) error {
	r.log.Error("a call panicked", "procedure", spec.Procedure, "panic", p)
	return connect.NewError(connect.CodeInternal, fmt.Errorf("%s panicked", spec.Procedure))
}

// serveReady answers 200 when the node takes splits: every drive was tried, at least one is ready, and the node is not
// draining.
func (r *routes) serveReady(w http.ResponseWriter, _ *http.Request) {
	why := r.unready()
	if why == "" {
		_, _ = w.Write([]byte("ready\n")) // a client that is gone needs no answer
		return
	}
	http.Error(w, why, http.StatusServiceUnavailable)
}

// allow makes a handler of a function outside Connect, for some roles alone, and answers its errors.
func allow(roles []identity.Role, f func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := identity.Require(r.TLS, roles...)
		if err == nil {
			err = f(w, r)
		}
		if err != nil {
			errorcode.Write(w, err)
		}
	}
}

// callerName names the caller of a request, for the bound of one peer's memory: by certificate, or by address if
// there is no certificate.
func callerName(r *http.Request) string {
	if r.TLS != nil {
		if id, err := identity.Peer(r.TLS); err == nil {
			return id.String()
		}
	}
	return admission.PeerOf(r.RemoteAddr)
}

// tlsKey is the key of a connection's TLS state in the context of a request.
type tlsKey struct{}

// withTLS puts the connection's TLS state where Connect's handlers find it.
func withTLS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil {
			r = r.WithContext(context.WithValue(r.Context(), tlsKey{}, r.TLS))
		}
		next.ServeHTTP(w, r)
	})
}

// tlsState returns what withTLS has put into a context, or nil.
func tlsState(ctx context.Context) *tls.ConnectionState {
	s, _ := ctx.Value(tlsKey{}).(*tls.ConnectionState)
	return s
}
