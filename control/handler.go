package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/guard"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/exposition"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/admission"
	"github.com/millrace/millrace/internal/httpbody"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
)

// Bounds of requests, unpacked.
const (
	maxBeat    = 64 << 20 // a node with 250,000 partitions
	maxToken   = dataset.MaxTokenBytes + 64<<10
	maxSubmit  = 2*MaxSpec + 32<<20 // with the description of 100,000 files
	maxAck     = 4 << 20
	maxRequest = 1 << 20
)

// messageLimit is the most bytes of a call's message, unpacked.
func messageLimit(procedure string) int64 {
	switch procedure {
	case apiv1connect.ControlHeartbeatProcedure:
		return maxBeat
	case apiv1connect.ControlSubmitJobProcedure:
		return maxSubmit
	case apiv1connect.ControlAttachProcedure:
		return int64(maxToken)
	case apiv1connect.ControlAcknowledgeProcedure:
		return maxAck
	}
	return maxRequest
}

// caller names the caller by its certificate, or by its address if no certificate is required.
func caller(r *http.Request) string {
	if id := guard.Peer(r.Context()); id != (identity.Identity{}) {
		return id.String()
	}
	return admission.PeerOf(r.RemoteAddr)
}

// handler serves the service, metrics and readiness.
func (s *Server) handler(secure bool) http.Handler {
	bounds := connect.WithConditionalHandlerOptions(func(spec connect.Spec) []connect.HandlerOption {
		return []connect.HandlerOption{connect.WithReadMaxBytes(int(messageLimit(spec.Procedure)))}
	})
	recovered := connect.WithRecover(func(_ context.Context, spec connect.Spec, _ http.Header, p any) error {
		s.logger.Error("a call panicked", "procedure", spec.Procedure, "panic", fmt.Sprint(p))
		return connect.NewError(connect.CodeInternal, fmt.Errorf("%s failed; the member's log says why",
			spec.Procedure))
	})
	path, service := apiv1connect.NewControlHandler(s, bounds, recovered, connect.WithCompressMinBytes(1<<10),
		connect.WithInterceptors(finalAnswers{s}))
	messages := s.memory.Messages(httpbody.MessageOptions{Most: messageLimit, Peer: caller, Logger: s.logger}, service)
	mux := http.NewServeMux()
	mux.Handle(path, guard.New(messages, secure, s.o.Rate))
	mux.Handle("GET /metrics", exposition.Handler(s.o.Registry))
	mux.Handle("GET /readyz", exposition.Reader(http.HandlerFunc(s.readyz)))
	if s.o.Profile {
		mux.Handle("/debug/pprof/", guard.OnLoopback(http.HandlerFunc(pprof.Index)))
		mux.Handle("/debug/pprof/profile", guard.OnLoopback(http.HandlerFunc(pprof.Profile)))
		mux.Handle("/debug/pprof/trace", guard.OnLoopback(http.HandlerFunc(pprof.Trace)))
	}
	// A body that no handler reads is bounded, too: the server reads it before the next request of the connection.
	return httpbody.Within(httpbody.Time, mux)
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready    bool     `json:"ready"`
	Leads    bool     `json:"leading"`
	Leader   string   `json:"leader"`
	Problems []string `json:"problems,omitempty"`
	Bytes    int64    `json:"etcd_bytes"`
	Quota    int64    `json:"etcd_quota_bytes"`
	Members  int      `json:"members"`
}

// readiness checks etcd and the election.
func (s *Server) readiness(ctx context.Context) readiness {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	leader, _ := s.store.Leader()
	r := readiness{Leads: s.Leads(), Leader: leader}
	switch {
	case leader == "":
		r.Problems = append(r.Problems, "no leader is known")
	case leader == s.url && !r.Leads:
		r.Problems = append(r.Problems, "this member was elected, and reads what is stored")
	}
	h, err := s.store.Healthy(ctx)
	if err != nil {
		r.Problems = append(r.Problems, err.Error())
	}
	for _, a := range h.Alarms {
		r.Problems = append(r.Problems, "etcd alarm "+a)
	}
	r.Bytes, r.Quota, r.Members, r.Ready = h.Bytes, h.Quota, h.Members, len(r.Problems) == 0
	return r
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ready := s.readiness(r.Context())
	w.Header().Set("Content-Type", "application/json")
	if !ready.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(ready) // an error means that the caller is gone
}

// WaitReady waits until a leader is known and etcd answers; the error names the missing part.
func (s *Server) WaitReady(ctx context.Context) error {
	for {
		r := s.readiness(ctx)
		if r.Ready {
			return nil
		}
		if wait.Sleep(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("control plane is not ready: %s: %w", strings.Join(r.Problems, "; "), ctx.Err())
		}
	}
}
