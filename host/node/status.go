package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node/heartbeat"
)

// status is what the node tells of itself; with full, its partitions and schemas too.
func (a *Agent) status(full bool) (*apiv1.NodeStatus, error) {
	inv, err := a.manager.Inventory()
	if err != nil {
		return nil, err
	}
	s := &apiv1.NodeStatus{
		Name: a.config.Name, Incarnation: a.incarnation, Urls: a.urls, Protocol: apiv1.Protocol, Version: a.o.Version, Inventory: inv.Digest[:],
		ClockSeconds: float64(time.Now().UnixNano()) / 1e9,
	}
	for _, j := range a.manager.Jobs() {
		s.Jobs = append(s.Jobs, j.String())
	}
	buffered := a.runs.Holding()
	s.BufferedBatches, s.BufferedBytes = buffered.Batches, buffered.Bytes
	held := map[string][]string{}
	for _, h := range inv.Drives {
		held[h.Drive] = h.Partitions
	}
	a.mu.Lock()
	s.Draining = a.draining
	drives := make([]*host.Drive, len(a.drives))
	for i, v := range a.drives {
		d := &apiv1.Drive{Name: v.config.Name, State: v.state, Busy: v.busy}
		if v.state == "ready" && v.drained {
			d.State = "draining"
		}
		drives[i] = v.drive
		s.Drives = append(s.Drives, d)
	}
	a.mu.Unlock()
	for i, d := range drives {
		out := s.Drives[i]
		// As the digest has it, even of a drive that the manager has and its supervisor has not announced yet: a list that differs from what its
		// digest stands for would never be corrected.
		out.Partitions = held[out.Name]
		if d == nil {
			continue
		}
		st := a.manager.Status(d)
		out.Uuid, out.Image, out.Computes, out.Threads, out.Streams = st.UUID, st.Image, st.Computes, int32(st.Threads), int32(st.Streams)
		out.FreeBytes, out.PRowsPerSecond, out.Running = st.Free, st.Rates, int32(a.runs.Running(st.Name))
	}
	if full {
		return s, inventory(s, inv)
	}
	return s, nil
}

// inventory adds partitions and schemas.
func inventory(s *apiv1.NodeStatus, inv *host.Inventory) error {
	for i := range inv.Partitions {
		p := &inv.Partitions[i]
		s.Partitions = append(s.Partitions, &apiv1.Partition{Name: p.Name, Bytes: p.Bytes, Rows: p.Rows, RowGroups: p.RowGroups, FooterSha256: p.Footer[:], Schema: p.Schema[:]})
	}
	for i := range inv.Schemas {
		sc := &inv.Schemas[i]
		columns, err := api.EncodeColumns(sc.Columns)
		if err != nil {
			return err
		}
		s.Schemas = append(s.Schemas, &apiv1.Schema{Digest: sc.Digest[:], Columns: columns, MeanLength: sc.MeanLength, Malformed: uint32(sc.Malformed)})
	}
	return nil
}

// serveReady answers 200 when the node takes splits: every drive was tried once, one at least is ready, and it is not draining.
func (a *Agent) serveReady(w http.ResponseWriter, _ *http.Request) {
	why := a.unready()
	if why == "" {
		_, _ = w.Write([]byte("ready\n"))
		return
	}
	http.Error(w, why, http.StatusServiceUnavailable)
}

// unready says why the node takes no splits; "" when it does.
func (a *Agent) unready() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining {
		return "draining"
	}
	ready := 0
	for _, v := range a.drives {
		if !v.tried {
			return fmt.Sprintf("drive %s is being opened", v.config.Name)
		}
		if v.state == "ready" {
			ready++
		}
	}
	if ready == 0 && len(a.drives) > 0 {
		return fmt.Sprintf("none of %d drives is ready: %s is %s", len(a.drives), a.drives[0].config.Name, a.drives[0].state)
	}
	return ""
}

// tlsKey is where a request's context has its TLS state.
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

func tlsState(ctx context.Context) *tls.ConnectionState {
	s, _ := ctx.Value(tlsKey{}).(*tls.ConnectionState)
	return s
}

// heartbeatOptions are what heartbeats need of the node.
func (a *Agent) heartbeatOptions() heartbeat.Options {
	return heartbeat.Options{
		Members: a.config.Control, Client: a.client, Fence: a.fence, Log: a.log,
		Status: func() (*apiv1.NodeStatus, error) { return a.status(true) }, Learn: a.tickets.Learn,
	}
}
