package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// How long Close waits for the control plane. For a rank that has finished it waits longer than an election takes: the
// job stays for minutes for a rank that announced its end and did not report it.
const (
	closeTime    = 3 * time.Second
	finishedTime = 20 * time.Second
)

// rank is the trainmgr.Source of one rank: its session, and the durable progress of its epoch.
type rank struct {
	client        *Client
	options       AttachOptions
	acks          *acks
	pool          *buffers
	firstEpoch    *trainmgr.Epoch // the epoch that the first call of Epoch returns; nil after it
	rowsPerSecond float64         // T of this rank; 0: not known
	batch         int             // rows of a mini-batch
	finished      bool            // every mini-batch of every epoch is acknowledged; the iterator and Close use it
	largestFrame  atomic.Int64    // bytes of the largest mini-batch so far

	manifest *dataset.Manifest // manifest is that of those partitions.

	ownMade, othersMade trainmgr.SideMeter // by workers that serve this rank alone, and by all others
	trainer             trainerSpeed
	profiler            *profiler // nil: the rank is not profiled
	stored              storedProfile

	mu           sync.Mutex
	id           string // id is that of the job.
	digest       dataset.Digest
	schema       *tensor.Schema
	session      []byte
	status       *apiv1.JobStatus
	epoch        *trainmgr.Epoch
	durable      *dataset.Progress // mini-batches of epoch whose acknowledgement the ledger knows
	leases       *leases           // leases are those of the delivery under way; nil when there is none.
	nodes        map[string]*node
	fence        uint64 // fence is that of the leader that answered last.
	failedLeases int    // given back because their node failed

	// The last reason that the control plane gave for granting no lease.
	waitingFor   string    // empty: it granted one, or the rank needs none
	starvedSince time.Time // since when the trainer has waited; zero: it does not wait
	loggedWait   time.Time // when the log named the wait last, or when the wait began
}

// Epoch implements trainmgr.Source. It returns the epoch that Attach found, and then each epoch that follows.
func (r *rank) Epoch(ctx context.Context) (*trainmgr.Epoch, error) {
	if e := r.firstEpoch; e != nil {
		r.firstEpoch = nil
		return e, nil
	}
	if err := r.acks.flush(ctx); err != nil {
		return nil, err
	}
	next := r.currentEpoch().Number + 1
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		// The control plane begins the next epoch when a rank asks for a lease of it.
		resp, err := r.lease(ctx, func() *apiv1.LeaseRequest {
			return &apiv1.LeaseRequest{Epoch: next, SaysDone: true, Want: 1, WaitSeconds: leaseWait.Seconds()}
		})
		if err != nil {
			return nil, err
		}
		if resp.JobDone {
			r.finished = true
			return nil, io.EOF
		}
		if len(resp.Grants) > 0 || resp.EpochDone {
			// The answer to Attach contains the numbers of this rank. Its new session gives the grants of this call back.
			var e *trainmgr.Epoch
			err := r.acks.changeSession(func() ([]byte, uint64, error) {
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
		r.noteWaiting(resp.Waiting, true, time.Now())
		if err := wait.Sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// meter returns the meter of the workers that serve this rank alone, or of all others.
func (r *rank) meter(own bool) *trainmgr.SideMeter {
	if own {
		return &r.ownMade
	}
	return &r.othersMade
}

// sideReport tells the control plane what a side has made.
func sideReport(m *trainmgr.SideMeter) *apiv1.SideReport {
	made := m.Read()
	return &apiv1.SideReport{Rows: float64(made.Rows), BusySeconds: made.Busy.Seconds()}
}

func (r *rank) currentEpoch() *trainmgr.Epoch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.epoch
}

// waitLogInterval is how long a trainer waits before the log says for what, and how long until the log says it again.
const waitLogInterval = 10 * time.Second

// noteWaiting keeps why the control plane granted no lease. waitingFor is empty if it granted one, or if the rank needs
// none. If the trainer starves, the log names the reason.
func (r *rank) noteWaiting(waitingFor string, starves bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waitingFor = waitingFor
	if waitingFor == "" || !starves {
		r.starvedSince = time.Time{}
		return
	}
	if r.starvedSince.IsZero() {
		r.starvedSince, r.loggedWait = now, now
	}
	if now.Sub(r.loggedWait) >= waitLogInterval {
		r.loggedWait = now
		r.client.options.Logger.Warn("the trainer waits for mini-batches", "job", r.id, "rank", r.options.Rank,
			"waiting", waitingFor,
			"for", now.Sub(r.starvedSince).Round(time.Second).String())
	}
}

// lease makes one Lease call. It makes a new request for every attempt, since the rank's leases change while the
// members elect a leader.
func (r *rank) lease(ctx context.Context, request func() *apiv1.LeaseRequest) (*apiv1.LeaseResponse, error) {
	resp, err := call(ctx, r.client, callTime, func(ctx context.Context, m controlClient) (*apiv1.LeaseResponse,
		error) {
		req := request()
		r.mu.Lock()
		req.Id, req.Session = r.id, r.session
		r.mu.Unlock()
		return m.Lease(ctx, req)
	})
	if err != nil {
		return nil, err
	}
	r.noteFence(resp.Fence)
	if resp.UnknownSession {
		return nil, fmt.Errorf("%w: attach again, with the trainer's token, to take it back", ErrFenced)
	}
	return resp, nil
}

// Acknowledged implements trainmgr.Source. The acknowledgement travels to the ledger with others.
func (r *rank) Acknowledged(epoch, number uint64) error { return r.acks.add(epoch, number) }

// noteFence notes which leader answers. If a new one does, the rank acknowledges everything of the epoch again: the old
// leader may have had acknowledgements of unfinished splits in its memory alone.
func (r *rank) noteFence(fence uint64) {
	r.mu.Lock()
	changed := r.fence != 0 && fence > r.fence
	r.fence = max(r.fence, fence)
	r.mu.Unlock()
	if changed {
		r.acknowledgeAgain()
	}
}

// acknowledgeAgain sends every acknowledgement of the epoch once more.
func (r *rank) acknowledgeAgain() {
	r.mu.Lock()
	epoch, numbers := r.epoch.Number, dataset.IntersectRanges(r.durable.Token().Acknowledged(), r.epoch.Owned)
	r.mu.Unlock()
	r.client.options.Logger.Info("acknowledge again", "job", r.id, "rank", r.options.Rank, "epoch", epoch,
		"runs", len(numbers))
	r.acks.addAgain(epoch, numbers)
}

// noteDurable notes which acknowledgements the ledger knows now.
func (r *rank) noteDurable(epoch uint64, ranges []dataset.Range, fence uint64) {
	r.mu.Lock()
	if r.epoch.Number == epoch {
		for _, numbers := range ranges {
			for n := numbers.From; n < numbers.To; n++ {
				_ = r.durable.Ack(n) // does not fail: the job acknowledged the number, so the plan has it
			}
		}
	}
	l := r.leases
	r.mu.Unlock()
	r.noteFence(fence)
	if l != nil {
		l.dropDelivered()
	}
}

// isDurable reports whether the ledger knows that every mini-batch of a range was acknowledged.
func (r *rank) isDurable(numbers dataset.Range) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	pending, ok := r.durable.Pending(numbers.From)
	return !ok || pending >= numbers.To
}

// checkpoint makes the trainer's acknowledgements durable and returns the token that the control plane has sealed.
// acknowledged returns the trainer's own token.
func (r *rank) checkpoint(ctx context.Context, acknowledged func() dataset.Token) ([]byte, error) {
	local := acknowledged()
	for try := 1; ; try++ {
		if err := r.acks.flush(ctx); err != nil {
			return nil, err
		}
		token, missing, err := r.sealedToken(ctx, local, acknowledged)
		if err != nil {
			return nil, err
		}
		if missing == nil {
			return token, nil
		}
		if try == maxTries {
			return nil, fmt.Errorf("%w: the ledger does not know that mini-batch %d was acknowledged", dataset.ErrToken,
				*missing)
		}
		r.acknowledgeAgain() // the members have elected another leader meanwhile
	}
}

// sealedToken asks for the rank's token. missing is a mini-batch that local acknowledges and the token does not, or
// nil.
func (r *rank) sealedToken(ctx context.Context, local dataset.Token,
	acknowledged func() dataset.Token) (token []byte, missing *uint64, err error) {
	r.mu.Lock()
	req := &apiv1.CheckpointRequest{Id: r.id, Session: r.session}
	total, owned := r.epoch.Plan.MiniBatches(), r.epoch.Owned
	r.mu.Unlock()
	resp, err := invoke(ctx, r.client, callTime, controlClient.Checkpoint, req)
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
	sealed, err := dataset.Resume(t, local.Job, total)
	if err != nil {
		return nil, nil, err
	}
	for _, numbers := range local.Acknowledged() {
		if n, ok := sealed.Pending(numbers.From); ok && n < numbers.To {
			return nil, &n, nil
		}
	}
	// The token must not acknowledge a mini-batch of this rank that the trainer has not acknowledged by now: a trainer
	// that resumed from the token would never get it.
	now := acknowledged()
	if now.Epoch != t.Epoch {
		return resp.Token, nil, nil // the trainer has finished the token's epoch meanwhile
	}
	had, err := dataset.Resume(now, local.Job, total)
	if err != nil {
		return nil, nil, err
	}
	for _, numbers := range dataset.IntersectRanges(t.Acknowledged(), owned) {
		if n, ok := had.Pending(numbers.From); ok && n < numbers.To {
			return nil, nil, fmt.Errorf("%w: the ledger says that mini-batch %d was acknowledged, and it was not",
				dataset.ErrToken, n)
		}
	}
	return resp.Token, nil, nil
}

// rowsLeft counts the rows that the current epoch still owes. r.mu is held.
func (r *rank) rowsLeft() int64 {
	rows := int64(0)
	for _, numbers := range r.epoch.Owned {
		for n := numbers.From; n < numbers.To; n++ {
			if mb, err := r.epoch.Plan.MiniBatch(n); err == nil && !r.durable.Acked(n) {
				rows += int64(mb.Rows)
			}
		}
	}
	return rows
}

// noteFrame keeps the size of the largest mini-batch.
func (r *rank) noteFrame(bytes int64) {
	if bytes > r.largestFrame.Load() {
		r.largestFrame.Store(bytes)
	}
}

// estimateBytes estimates the size of a mini-batch: the largest so far, or, before the first one, the size of the
// schema's tensors without the elements of lists.
func (r *rank) estimateBytes() int64 {
	if n := r.largestFrame.Load(); n > 0 {
		return n
	}
	row := 4 + int64(len(r.schema.Dense)*r.schema.DenseDType().Size()) +
		int64(len(r.schema.Keys))*int64(r.schema.IDs.Size())
	if !r.schema.Fixed() {
		row += 4 * int64(len(r.schema.Keys))
	}
	return row * int64(r.batch)
}

// node returns the node of a name.
func (r *rank) node(name string) *node {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, ok := r.nodes[name]
	if !ok {
		n = &node{name: name, http: r.client.makers}
		r.nodes[name] = n
	}
	return n
}

// Allocation implements trainmgr.Source. It returns the control plane's allocation.
func (r *rank) Allocation() allocation.Allocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	a := allocation.Allocation{
		RowsPerSecond: s.Spec.GetTRowsPerSecond(), Drives: int(s.Drives), Wanted: int(s.DrivesWanted),
		Note: s.Allocation,
	}
	if a.RowsPerSecond == 0 {
		a.RowsPerSecond = r.rowsPerSecond
	}
	if s.PRowsPerSecond > 0 {
		a.P = map[string]float64{"mean of the drives": s.PRowsPerSecond}
	}
	if e := s.ExpectedStallSeconds; e > 0 && e < 1e9 {
		a.ExpectedStall = time.Duration(e * float64(time.Second))
	}
	return a
}

// Report implements trainmgr.Source. It asks each node from which this rank took mini-batches for its drives' work
// for all ranks of the job. A note names each node that does not answer.
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
	waitingFor, failedLeases := r.waitingFor, r.failedLeases
	r.mu.Unlock()
	slices.SortFunc(nodes, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	var (
		drives []api.DriveReport
		notes  []string
	)
	for _, n := range nodes {
		reports, err := n.driveReports(ctx, r.digest)
		if err != nil {
			notes = append(notes, fmt.Sprintf("node %s says nothing of its drives: %v", n.name, err))
			continue
		}
		drives = append(drives, reports...)
	}
	if waitingFor != "" {
		notes = append(notes, "the control plane said last: "+waitingFor)
	}
	if p := r.profiler; p != nil {
		if ended, _, _ := p.ended(); ended {
			status := p.status()
			note := fmt.Sprintf("the profile took %.1f s, %.1f %% of the training", status.Seconds,
				100*status.Seconds/max(status.Training, shortestMeasured))
			switch {
			case status.LeftOut:
				note = "the profile was left out: the job takes less than five times as long"
			case status.From == apiv1.ProfileStored:
				note += ": it was stored by an earlier job with the same model, pipeline and workers"
			}
			notes = append(notes, note)
		}
	}
	if failedLeases > 0 {
		notes = append(notes, fmt.Sprintf("%d leases were given back because their node failed", failedLeases))
	}
	return drives, notes, nil
}

// driveReports asks a node for its drives' reports on a job.
func (n *node) driveReports(ctx context.Context, job dataset.Digest) ([]api.DriveReport, error) {
	n.mu.Lock()
	if len(n.bases) == 0 {
		n.mu.Unlock()
		return nil, errors.New("it was never reached")
	}
	base := n.bases[0]
	n.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	resp, err := apiv1connect.NewNodeClient(n.http, base, connect.WithReadMaxBytes(maxMessage)).Report(ctx,
		&apiv1.ReportRequest{Job: job[:]})
	if err != nil {
		return nil, err
	}
	reports := make([]api.DriveReport, len(resp.Drives))
	for i, raw := range resp.Drives {
		if err := json.Unmarshal(raw, &reports[i]); err != nil {
			return nil, fmt.Errorf("drive %d: %w", i, err)
		}
		reports[i].Name = n.name + "/" + reports[i].Name
	}
	return reports, nil
}

// Close implements trainmgr.Source. It makes the acknowledgements durable if the control plane answers within
// closeTime. It reports the end of a rank that has finished if the control plane answers within finishedTime.
func (r *rank) Close() error {
	limit := closeTime
	if r.finished {
		limit = finishedTime
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := r.acks.flush(ctx)
	r.acks.close()
	r.stored.writing.Wait()
	if err != nil {
		return fmt.Errorf("the last acknowledgements may not be durable: %w", err)
	}
	reason := reasonDetach
	if r.finished {
		reason = reasonDone
	}
	_, err = invoke(ctx, r.client, callTime, controlClient.Release, &apiv1.ReleaseRequest{Id: r.id, Session: r.session,
		Reason: reason})
	switch {
	case err == nil:
	case r.finished: // the job ends without that, later
		r.client.options.Logger.Warn("the control plane was not told that a rank is through", "job", r.id,
			"rank", r.options.Rank, "error", err)
	default: // the rank is fenced, the job has ended, or the control plane is away and will miss the rank
		r.client.options.Logger.Debug("the control plane was not told that a rank detaches", "job", r.id,
			"rank", r.options.Rank, "error", err)
	}
	return nil
}
