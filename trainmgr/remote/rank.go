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
	"github.com/millrace/millrace/trainmgr/allocation"
)

// closeTime is how long ending waits for the control plane.
const closeTime = 3 * time.Second

// rank is the trainmgr.Source of one rank: its session, and what of its epoch is durable.
type rank struct {
	client  *Client
	o       AttachOptions
	acks    *acks
	pool    *buffers
	first   *trainmgr.Epoch // what Epoch returns first
	t       float64         // this rank's T
	batch   int
	through bool         // everything of every epoch is acknowledged; only the iterator and Close look
	frame   atomic.Int64 // bytes of the largest mini-batch seen

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
	fence   uint64    // of the leader that answered last
	waiting string    // why the control plane granted nothing, last
	starved time.Time // since when the trainer has waited for that; zero: it does not
	spoken  time.Time // when the log said so last, or when that began
	redone  int       // leases given back because their node failed
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
			return &apiv1.LeaseRequest{Epoch: next, SaysDone: true, Want: 1, WaitSeconds: leaseWait.Seconds()}
		})
		if err != nil {
			return nil, err
		}
		if resp.JobDone {
			r.through = true
			return nil, io.EOF
		}
		if len(resp.Grants) > 0 || resp.EpochDone {
			// Which numbers are this rank's is in the answer to Attach, whose new session returns what was just granted.
			var e *trainmgr.Epoch
			err := r.acks.attach(func() ([]byte, uint64, error) {
				attached, err := r.attach(ctx, r.id, nil, false)
				if err != nil {
					return nil, 0, err
				}
				e, err = r.epochOf(attached)
				return attached.Session, attached.Epoch, err
			})
			if err != nil {
				return nil, err
			}
			if e.Number >= next {
				return e, nil
			}
		}
		r.note(resp.Waiting, true, time.Now())
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

// speakAfter is how long a trainer waits before the log says what for, and how long until it says so again.
const speakAfter = 10 * time.Second

// note keeps why the control plane granted nothing; empty: it did, or need not. The log says so when the trainer
// starves of it.
func (r *rank) note(waiting string, starves bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = waiting
	if waiting == "" || !starves {
		r.starved = time.Time{}
		return
	}
	if r.starved.IsZero() {
		r.starved, r.spoken = now, now
	}
	if now.Sub(r.spoken) >= speakAfter {
		r.spoken = now
		r.client.o.Logger.Warn("the trainer waits for mini-batches", "job", r.id, "rank", r.o.Rank, "waiting", waiting, "for", now.Sub(r.starved).Round(time.Second).String())
	}
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
	r.heard(resp.Fence)
	if resp.UnknownSession {
		return nil, fmt.Errorf("%w: attach again, with the trainer's token, to take it back", ErrFenced)
	}
	return resp, nil
}

// Acknowledged sends an acknowledgement on its way.
func (r *rank) Acknowledged(epoch, number uint64) error { return r.acks.add(epoch, number) }

// heard notes which leader answers. What another one had been told of splits that are not finished it may have had in memory
// alone: a new one is told again.
func (r *rank) heard(fence uint64) {
	r.mu.Lock()
	changed := r.fence != 0 && fence > r.fence
	r.fence = max(r.fence, fence)
	r.mu.Unlock()
	if changed {
		r.tellAgain()
	}
}

// tellAgain acknowledges everything of the epoch once more.
func (r *rank) tellAgain() {
	r.mu.Lock()
	epoch, runs := r.epoch.Number, dataset.IntersectRanges(r.durable.Token().Acknowledged(), r.epoch.Owned)
	r.mu.Unlock()
	r.client.o.Logger.Info("acknowledge again", "job", r.id, "rank", r.o.Rank, "epoch", epoch, "runs", len(runs))
	r.acks.again(epoch, runs)
}

// landed notes what the ledger knows now.
func (r *rank) landed(epoch uint64, runs []dataset.Range, fence uint64) {
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
	r.heard(fence)
	if l != nil {
		l.sweep()
	}
}

// known reports whether the ledger knows that all of a run is delivered.
func (r *rank) known(run dataset.Range) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, ok := r.durable.Pending(run.From)
	return !ok || n >= run.To
}

// checkpoint makes a token durable and has it sealed.
func (r *rank) checkpoint(ctx context.Context, acknowledged func() dataset.Token) ([]byte, error) {
	local := acknowledged()
	for try := 1; ; try++ {
		if err := r.acks.flush(ctx); err != nil {
			return nil, err
		}
		token, missing, err := r.sealed(ctx, local, acknowledged)
		if err != nil {
			return nil, err
		}
		if missing == nil {
			return token, nil
		}
		if try == tries {
			return nil, fmt.Errorf("%w: the ledger does not know that mini-batch %d was acknowledged", dataset.ErrToken, *missing)
		}
		r.tellAgain() // a leader was elected in between
	}
}

// sealed asks for the rank's token, and looks whether anything is missing that the trainer has acknowledged.
func (r *rank) sealed(ctx context.Context, local dataset.Token, acknowledged func() dataset.Token) (token []byte, missing *uint64, err error) {
	r.mu.Lock()
	req := &apiv1.CheckpointRequest{Id: r.id, Session: r.session}
	total, owned := r.epoch.Plan.MiniBatches(), r.epoch.Owned
	r.mu.Unlock()
	resp, err := call(ctx, r.client, callTime, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.CheckpointResponse, error) {
		return m.Checkpoint(ctx, req)
	})
	if err != nil {
		return nil, nil, err
	}
	t, err := ReadToken(resp.Token)
	if err != nil {
		return nil, nil, err
	}
	if t.Epoch != local.Epoch {
		return nil, nil, fmt.Errorf("%w: of epoch %d, the rank is in %d", dataset.ErrToken, t.Epoch, local.Epoch)
	}
	says, err := dataset.Resume(t, local.Job, total)
	if err != nil {
		return nil, nil, err
	}
	for _, run := range local.Acknowledged() {
		if n, ok := says.Pending(run.From); ok && n < run.To {
			return nil, &n, nil
		}
	}
	// Nor may it say more of this rank's than the trainer has had by now: who resumed from it would never get the rest.
	now := acknowledged()
	if now.Epoch != t.Epoch {
		return resp.Token, nil, nil // the trainer has gone on meanwhile: it had all of it
	}
	had, err := dataset.Resume(now, local.Job, total)
	if err != nil {
		return nil, nil, err
	}
	for _, run := range dataset.IntersectRanges(t.Acknowledged(), owned) {
		if n, ok := had.Pending(run.From); ok && n < run.To {
			return nil, nil, fmt.Errorf("%w: the ledger says that mini-batch %d was acknowledged, and it was not", dataset.ErrToken, n)
		}
	}
	return resp.Token, nil, nil
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
func (r *rank) Allocation() allocation.Allocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	a := allocation.Allocation{RowsPerSecond: s.Spec.GetTRowsPerSecond(), Drives: int(s.Drives), Wanted: int(s.DrivesWanted), Note: s.Allocation}
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
	reason := "detach"
	if r.through {
		reason = "done"
	}
	_, err = call(ctx, r.client, callTime, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.ReleaseResponse, error) {
		return m.Release(ctx, &apiv1.ReleaseRequest{Id: r.id, Session: r.session, Reason: reason})
	})
	switch {
	case err == nil:
	case r.through: // it ends by itself, later
		r.client.o.Logger.Warn("the control plane was not told that a rank is through", "job", r.id, "rank", r.o.Rank, "error", err)
	default: // it is fenced off, the job has ended, or the control plane is away and notices by itself
		r.client.o.Logger.Debug("the control plane was not told that a rank detaches", "job", r.id, "rank", r.o.Rank, "error", err)
	}
	return nil
}
