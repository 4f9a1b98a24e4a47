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
	"github.com/millrace/millrace/trainmgr/remote/profile"
	"github.com/millrace/millrace/trainmgr/remote/protocol"
	"github.com/millrace/millrace/trainmgr/sidemeter"
)

// rank is the trainmgr.Source of one rank. Its machine decides what is said to the control plane and to nodes, and the
// rank carries that out.
type rank struct {
	client        *Client
	options       AttachOptions
	pool          *buffers
	firstEpoch    *trainmgr.Epoch // the epoch that the first call of Epoch returns; nil after it
	rowsPerSecond float64         // T of this rank; 0: not known
	batch         int             // rows of a mini-batch
	largestFrame  atomic.Int64    // bytes of the largest mini-batch so far

	manifest *dataset.Manifest // manifest is that of those partitions.

	ownMade, othersMade sidemeter.Meter // by workers that serve this rank alone, and by all others
	trainer             profile.Trainer
	profiler            *profile.Profiler // nil: the rank is not profiled
	stored              storedProfile

	id     string         // id is that of the job. Like digest and schema, it does not change after the first attachment.
	digest dataset.Digest // digest is that of the epoch in which the rank began.
	schema *tensor.Schema

	lasting *calls // calls that end with the rank: acknowledgements, and its farewell

	mu       sync.Mutex
	machine  *protocol.Machine
	timer    *time.Timer // It ticks the machine.
	nextTick time.Time   // when timer fires; zero: it does not
	changed  wait.Broadcast
	turning  *calls  // calls for the next epoch, for the call of Epoch under way
	leases   *leases // leases are those of the delivery under way; nil when there is none.
	status   *apiv1.JobStatus
	epoch    *trainmgr.Epoch
	nodes    map[string]*node
}

// start makes the machine of a rank that has attached.
func (r *rank) start(a protocol.Attachment) {
	o := &r.options
	r.machine = protocol.New(protocol.Options{
		Pieces: o.Pieces, Acks: o.Acks, AckDelay: o.AckDelay, Deadline: o.Deadline, Refused: o.refused,
	}, a)
	r.lasting = newCalls(context.Background())
	r.timer = time.AfterFunc(time.Hour, r.tick)
	r.timer.Stop()
}

// stop ends the calls of a rank that has left, or that could not begin.
func (r *rank) stop() {
	r.timer.Stop()
	r.lasting.end()
}

// Epoch implements trainmgr.Source. It returns the epoch that Attach found, and then each epoch that follows.
func (r *rank) Epoch(ctx context.Context) (*trainmgr.Epoch, error) {
	if e := r.firstEpoch; e != nil {
		r.firstEpoch = nil
		return e, nil
	}
	turning := newCalls(ctx)
	r.tell(func(m *protocol.Machine, now time.Time) {
		r.turning = turning
		m.BeginNextEpoch(now)
	})
	var (
		inNext, afterLast bool
		failed            error
	)
	ended := r.await(ctx, func(m *protocol.Machine) bool {
		inNext, afterLast, failed = m.NextEpoch()
		return inNext || afterLast || failed != nil
	})
	if ended != nil {
		r.tell(func(m *protocol.Machine, now time.Time) { m.StopNextEpoch(now) })
	}
	turning.end()
	if err := errors.Join(ended, failed); err != nil {
		return nil, err
	}
	if afterLast {
		return nil, io.EOF
	}
	return r.currentEpoch(), nil
}

// meter returns the meter of the workers that serve this rank alone, or of all others.
func (r *rank) meter(own bool) *sidemeter.Meter {
	if own {
		return &r.ownMade
	}
	return &r.othersMade
}

// sideReport tells the control plane what a side has made.
func sideReport(m *sidemeter.Meter) *apiv1.SideReport {
	made := m.Read()
	return &apiv1.SideReport{Rows: float64(made.Rows), BusySeconds: made.Busy.Seconds()}
}

func (r *rank) currentEpoch() *trainmgr.Epoch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.epoch
}

// Acknowledged implements trainmgr.Source. The acknowledgement travels to the ledger with others.
func (r *rank) Acknowledged(epoch, number uint64) (err error) {
	r.tell(func(m *protocol.Machine, now time.Time) { err = m.Acknowledge(epoch, number, now) })
	return err
}

// checkpoint makes the trainer's acknowledgements durable and returns the token that the control plane has sealed.
// acknowledged returns the trainer's own token.
func (r *rank) checkpoint(ctx context.Context, acknowledged func() dataset.Token) (token []byte, err error) {
	c := protocol.BeginCheckpoint(acknowledged())
	for ok := false; !ok; {
		if err := r.flush(ctx); err != nil {
			return nil, err
		}
		req := &apiv1.CheckpointRequest{Id: r.id}
		r.tell(func(m *protocol.Machine, _ time.Time) { req.Session = m.AskToken(c) })
		resp, err := invoke(ctx, r.client, callTime, controlClient.Checkpoint, req)
		if err != nil {
			return nil, err
		}
		sealed, err := ReadToken(resp.Token)
		if err != nil {
			return nil, err
		}
		since := acknowledged()
		r.tell(func(m *protocol.Machine, now time.Time) { ok, err = m.TokenSealed(c, sealed, since, now) })
		if err != nil {
			return nil, err
		}
		token = resp.Token
	}
	return token, nil
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

// node returns the node of a name. r.mu is held.
func (r *rank) node(name string) *node {
	n, ok := r.nodes[name]
	if !ok {
		n = &node{name: name, http: r.client.makers}
		r.nodes[name] = n
	}
	return n
}

// address returns the address of a node to ask next; "" if it was never reached.
func (r *rank) address(n *node) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.Address(n.name)
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
	waitingFor, failedLeases := r.machine.WaitingFor(), r.machine.FailedLeases()
	digest := r.epoch.Progress.Job()
	r.mu.Unlock()
	slices.SortFunc(nodes, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	var (
		drives []api.DriveReport
		notes  []string
	)
	for _, n := range nodes {
		reports, err := n.driveReports(ctx, r.address(n), digest)
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
		if ended, _, _ := p.Ended(); ended {
			status := p.Status()
			note := fmt.Sprintf("the profile took %.1f s, %.1f %% of the training", status.Seconds,
				100*status.Seconds/max(status.Training, 1e-9))
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

// reportTime is how long one node gets to answer Report.
const reportTime = 3 * time.Second

// driveReports asks a node for its drives' reports on a job.
func (n *node) driveReports(ctx context.Context, base string, job dataset.Digest) ([]api.DriveReport, error) {
	if base == "" {
		return nil, errors.New("it was never reached")
	}
	ctx, cancel := context.WithTimeout(ctx, reportTime)
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

// Close implements trainmgr.Source. It makes the acknowledgements durable and tells the control plane that the rank
// ends, if the control plane answers within seconds.
func (r *rank) Close() error {
	r.tell(func(m *protocol.Machine, now time.Time) { m.Leave(now) })
	var err, reportError error
	_ = r.await(context.Background(), func(m *protocol.Machine) (left bool) { // at the machine's deadline at the latest
		left, err, reportError = m.Left()
		return left
	})
	r.stop()
	r.stored.writing.Wait()
	switch logger := r.client.options.Logger; {
	case reportError == nil:
	case r.machine.Finished(): // the job ends without that, later
		logger.Warn("the control plane did not get the report that a rank has finished", "job", r.id, "rank", r.options.Rank,
			"error", reportError)
	default: // the rank is fenced, the job has ended, or the control plane is away and will miss the rank
		logger.Debug("the control plane did not get the report that a rank detaches", "job", r.id, "rank", r.options.Rank,
			"error", reportError)
	}
	return err
}
