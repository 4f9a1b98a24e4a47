package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
)

// closeTime is how long ending waits for the control plane.
const closeTime = 3 * time.Second

// rank is the trainmgr.Source of one rank: its session, and what of its epoch is durable.
type rank struct {
	client *Client
	o      AttachOptions
	acks   *acks
	pool   *buffers
	first  *trainmgr.Epoch // what Epoch returns first
	t      float64         // this rank's T
	batch  int
	frame  atomic.Int64 // bytes of the largest mini-batch seen

	mu      sync.Mutex
	id      string
	digest  dataset.Digest
	schema  *tensor.Schema
	session []byte
	status  *apiv1.JobStatus
	epoch   *trainmgr.Epoch
	durable *dataset.Progress // of epoch: acknowledged, and known to the ledger
	leases  *leases           // while it delivers
	nodes   map[string]*node
	waiting string // why the control plane granted nothing, last
	redone  int    // leases given back because their node failed
}

// Epoch returns the epoch that Attach found, and then each that follows.
func (r *rank) Epoch(ctx context.Context) (*trainmgr.Epoch, error) {
	if e := r.first; e != nil {
		r.first = nil
		return e, nil
	}
	if err := r.acks.flush(ctx); err != nil {
		return nil, err
	}
	next := r.current().Number + 1
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		// To ask for a lease of the next epoch is what begins it.
		resp, err := r.lease(ctx, func() *apiv1.LeaseRequest {
			return &apiv1.LeaseRequest{Epoch: next, Want: 1, WaitSeconds: leaseWait.Seconds()}
		})
		if err != nil {
			return nil, err
		}
		if resp.JobDone {
			return nil, io.EOF
		}
		if len(resp.Grants) > 0 || resp.EpochDone {
			// Which numbers are this rank's is in the answer to Attach, whose new session returns what was just granted.
			attached, err := r.attach(ctx, r.id, nil)
			if err != nil {
				return nil, err
			}
			r.acks.attach(attached.Session)
			e, err := r.epochOf(attached)
			if err != nil || e.Number >= next {
				return e, err
			}
		}
		r.note(resp.Waiting)
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

func (r *rank) current() *trainmgr.Epoch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.epoch
}

func (r *rank) note(waiting string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = waiting
}

// lease makes one Lease call. The request is made anew for every attempt, since what is held changes while a leader is
// elected.
func (r *rank) lease(ctx context.Context, request func() *apiv1.LeaseRequest) (*apiv1.LeaseResponse, error) {
	resp, err := call(ctx, r.client, callTime, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.LeaseResponse, error) {
		req := request()
		r.mu.Lock()
		req.Id, req.Session = r.id, r.session
		r.mu.Unlock()
		return m.Lease(ctx, req)
	})
	if err != nil {
		return nil, err
	}
	if resp.UnknownSession {
		return nil, fmt.Errorf("%w: attach again, with the trainer's token, to take it back", ErrFenced)
	}
	return resp, nil
}

// Acknowledged sends an acknowledgement on its way.
func (r *rank) Acknowledged(epoch, number uint64) error { return r.acks.add(epoch, number) }

// landed notes what the ledger knows now.
func (r *rank) landed(epoch uint64, runs []dataset.Run) {
	r.mu.Lock()
	if r.epoch.Number == epoch {
		for _, run := range runs {
			for n := run.From; n < run.To; n++ {
				_ = r.durable.Ack(n) // of the plan: it was acknowledged here first
			}
		}
	}
	l := r.leases
	r.mu.Unlock()
	if l != nil {
		l.sweep()
	}
}

// known reports whether the ledger knows that all of a run is delivered.
func (r *rank) known(run dataset.Run) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, ok := r.durable.Pending(run.From)
	return !ok || n >= run.To
}

// checkpoint makes a token durable and has it sealed.
func (r *rank) checkpoint(ctx context.Context, local dataset.Token) ([]byte, error) {
	if err := r.acks.flush(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	req := &apiv1.CheckpointRequest{Id: r.id, Session: r.session}
	total := r.epoch.Plan.MiniBatches()
	r.mu.Unlock()
	resp, err := call(ctx, r.client, callTime, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.CheckpointResponse, error) {
		return m.Checkpoint(ctx, req)
	})
	if err != nil {
		return nil, err
	}
	token, err := ReadToken(resp.Token)
	if err != nil {
		return nil, err
	}
	if token.Epoch != local.Epoch {
		return nil, fmt.Errorf("%w: of epoch %d, the rank is in %d", dataset.ErrToken, token.Epoch, local.Epoch)
	}
	sealed, err := dataset.Resume(token, local.Job, total)
	if err != nil {
		return nil, err
	}
	for _, run := range append([]dataset.Run{{To: local.Mark}}, local.Runs...) {
		if n, ok := sealed.Pending(run.From); ok && n < run.To {
			return nil, fmt.Errorf("%w: the ledger does not know that mini-batch %d was acknowledged", dataset.ErrToken, n)
		}
	}
	return resp.Token, nil
}

// rowsLeft counts what the current epoch still owes. r.mu is held.
func (r *rank) rowsLeft() int64 {
	rows := int64(0)
	for _, run := range r.epoch.Owned {
		for n := run.From; n < run.To; n++ {
			if mb, err := r.epoch.Plan.MiniBatch(n); err == nil && !r.durable.Acked(n) {
				rows += int64(mb.Rows)
			}
		}
	}
	return rows
}

// estimate is how many bytes a mini-batch will have, as far as is known.
func (r *rank) estimate() int64 {
	if n := r.frame.Load(); n > 0 {
		return n
	}
	row := 4 + 4*int64(len(r.schema.Dense)) + int64(len(r.schema.Keys))*int64(r.schema.IDs.Size())
	if !r.schema.Fixed() {
		row += 4 * int64(len(r.schema.Keys))
	}
	return row * int64(r.batch)
}

// node returns the named node.
func (r *rank) node(name string) *node {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, ok := r.nodes[name]
	if !ok {
		n = &node{name: name, http: r.client.http}
		r.nodes[name] = n
	}
	return n
}

// Allocation tells what the control plane decided.
func (r *rank) Allocation() trainmgr.Allocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	a := trainmgr.Allocation{RowsPerSecond: s.Spec.GetTRowsPerSecond(), Drives: int(s.Drives), Wanted: int(s.DrivesWanted), Note: s.Allocation}
	if a.RowsPerSecond == 0 {
		a.RowsPerSecond = r.t
	}
	if s.PRowsPerSecond > 0 {
		a.P = map[string]float64{"mean of the drives": s.PRowsPerSecond}
	}
	if e := s.ExpectedStallSeconds; e > 0 && e < 1e9 {
		a.ExpectedStall = time.Duration(e * float64(time.Second))
	}
	return a
}

// Report asks the nodes that this rank took mini-batches from what their drives did for the job, all ranks together; nodes that do not
// answer are named.
func (r *rank) Report(ctx context.Context) ([]api.DriveReport, []string, error) {
	if st, err := r.client.Get(ctx, r.id); err == nil {
		r.mu.Lock()
		r.status = st
		r.mu.Unlock()
	}
	r.mu.Lock()
	nodes := make([]*node, 0, len(r.nodes))
	for _, n := range r.nodes {
		nodes = append(nodes, n)
	}
	waiting, redone := r.waiting, r.redone
	r.mu.Unlock()
	var (
		out   []api.DriveReport
		notes []string
	)
	for _, n := range nodes {
		list, err := n.report(ctx, r.digest)
		if err != nil {
			notes = append(notes, fmt.Sprintf("node %s says nothing of its drives: %v", n.name, err))
			continue
		}
		out = append(out, list...)
	}
	if waiting != "" {
		notes = append(notes, "the control plane said last: "+waiting)
	}
	if redone > 0 {
		notes = append(notes, fmt.Sprintf("%d leases were given back because their node failed", redone))
	}
	return out, notes, nil
}

// report asks a node what its drives did.
func (n *node) report(ctx context.Context, job dataset.Digest) ([]api.DriveReport, error) {
	n.mu.Lock()
	if len(n.bases) == 0 {
		n.mu.Unlock()
		return nil, errors.New("it was never reached")
	}
	base := n.bases[0]
	n.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	resp, err := apiv1connect.NewNodeClient(n.http, base, connect.WithReadMaxBytes(maxMessage)).Report(ctx, &apiv1.ReportRequest{Job: job[:]})
	if err != nil {
		return nil, err
	}
	out := make([]api.DriveReport, len(resp.Drives))
	for i, raw := range resp.Drives {
		if err := json.Unmarshal(raw, &out[i]); err != nil {
			return nil, fmt.Errorf("drive %d: %w", i, err)
		}
		out[i].Name = n.name + "/" + out[i].Name
	}
	return out, nil
}

// Close makes what was acknowledged durable if the control plane answers soon.
func (r *rank) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := r.acks.flush(ctx)
	r.acks.close()
	if err != nil {
		return fmt.Errorf("the last acknowledgements may not be durable: %w", err)
	}
	return nil
}
