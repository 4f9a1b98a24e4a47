package control

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/guard"
	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/store"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
)

// SubmitJob implements the service. It returns when the job is stored; the job is prepared afterwards.
func (s *Server) SubmitJob(ctx context.Context, req *apiv1.SubmitJobRequest) (*apiv1.SubmitJobResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	if req.Spec == nil {
		return nil, l.wireError(fmt.Errorf("%w: there is no spec", record.ErrSpec))
	}
	// The name of a pipeline that ships with Millrace stands for its document. The document is stored, since a later
	// version may have another one.
	if document, err := pipeline.Document(string(req.Spec.Pipeline)); err == nil {
		req.Spec.Pipeline = document
	}
	modules, err := s.readJobFiles(ctx, req.Spec)
	if err != nil {
		return nil, l.wireError(err)
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(req.Spec)
	if err != nil {
		return nil, l.wireError(err)
	}
	if len(raw) > MaxSpec {
		return nil, l.wireError(fmt.Errorf("%w: a spec of %d bytes, at most %d", record.ErrSpec, len(raw), MaxSpec))
	}
	owner, err := guard.OwnerFor(ctx, req.Owner)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	stored := record.Submission{ID: newID(req.Spec.Name), Owner: owner, Submitted: now.UTC(), Spec: raw}
	j, sealed, err := newJob(stored, req.Spec, l.key)
	if err != nil {
		return nil, l.wireError(err)
	}
	if err := j.checkModules(modules); err != nil {
		return nil, l.wireError(err)
	}
	if !sealed {
		l.logger.Warn("a job resumes from a token that no control plane has sealed", "job", stored.ID, "token",
			j.Resume.String())
	}
	if was, err := l.claimName(ctx, j); was != nil || err != nil {
		return was, l.wireError(err)
	}
	defer func() {
		l.mu.Lock()
		close(l.mu.claims[j.spec.Name].over)
		delete(l.mu.claims, j.spec.Name)
		l.mu.Unlock()
	}()
	if j.pipeline.Filter != nil && s.jobFiles == nil {
		return nil, connect.NewError(connect.CodeFailedPrecondition, errNoSelections)
	}
	own := req.OwnFiles
	if !j.workersMake() {
		own = nil // nobody could read them
	}
	data, err := l.selectPartitions(ctx, j.spec.Partitions, j.spec.Exclude, own)
	if err != nil {
		return nil, l.wireError(err)
	}
	g, err := newEdition(j, data, 0, 0)
	if err != nil {
		return nil, l.wireError(err)
	}
	if err := checkPlan(j, g, s.o.MaxSplits); err != nil {
		return nil, l.wireError(err)
	}
	ops, err := storeEdition(j, g)
	if err != nil {
		return nil, l.wireError(fmt.Errorf("%w: %w", record.ErrSpec, err))
	}
	if err := l.claimPieces(j.spec.Name, guard.Peer(ctx).Owner(), g.Pieces); err != nil {
		return nil, l.wireError(err)
	}
	submitted := lifecycle.Submission(g.Edition.Edition)
	spec, err := jsonOp(record.Key(stored.ID, "spec"), j.Submission)
	if err != nil {
		return nil, l.wireError(err)
	}
	state, err := jsonOp(record.Key(stored.ID, "state"), submitted)
	if err != nil {
		return nil, l.wireError(err)
	}
	// A job exists from the moment at which its spec is stored, so the spec is written last.
	if err := l.commitAll(ctx, append(ops, state, spec)); err != nil {
		// The last write may have succeeded or not, and the caller gets an error.
		l.storeLater("what is left of a job that was not submitted", store.DeletePrefix(record.Key(stored.ID, "")))
		return nil, l.wireError(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return nil, s.notLeader() // the next leader loads the job
	}
	j.editions[0] = g
	if err := l.mu.machine.Add(j.Job, submitted, nil, time.Now()); err != nil {
		return nil, l.wireError(err)
	}
	l.mu.jobs[stored.ID] = j
	l.logger.Info("job", "job", j.ID, "from", "", "to", string(record.Preparing), "digest", g.Digest.String()[:12],
		"partitions", len(data.Manifest.Partitions), "rows", data.Manifest.Rows())
	l.start(j)
	return &apiv1.SubmitJobResponse{Job: l.statusLocked(j, time.Now())}, nil
}

// newID makes a job's ID from the job's name.
func newID(name string) string {
	var b [4]byte
	rand.Read(b[:]) // never fails, by its contract
	return name + "-" + hex.EncodeToString(b[:])
}

// claimWait is how long a submission waits until a job of the same name is stored or has ended.
const claimWait = 5 * time.Second

// claim is the name of a job that is being stored.
type claim struct {
	owner  string
	over   chan struct{} // closed when the job is stored or refused
	pieces int           // pieces counts those of the description of the job's data; 0 means that it is not known yet.
}

// claimName reserves the job's name while the job is stored. If a running job has exactly the same specification,
// claimName returns that job instead: an answer may have been lost.
func (l *leader) claimName(ctx context.Context, j *job) (*apiv1.SubmitJobResponse, error) {
	t := time.NewTimer(claimWait)
	defer t.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for waited := false; !waited; {
		var over <-chan struct{}
		// A job whose last mini-batch was just acknowledged is about to end: its submitter wants another pass, not its
		// end.
		if was := runningJob(l.mu.machine.Lives, l.mu.jobs, j.spec.Name); was != nil && was.Ending(time.Now()) {
			over = was.changed.Changed()
		} else if c, ok := l.mu.claims[j.spec.Name]; was == nil && ok {
			over = c.over // Every rank of a run submits the job at the same time.
		} else {
			break
		}
		l.mu.Unlock()
		select {
		case <-over:
		case <-t.C:
			waited = true
		case <-ctx.Done():
			waited = true
		case <-l.ctx.Done():
			waited = true
		}
		l.mu.Lock()
	}
	if was := runningJob(l.mu.machine.Lives, l.mu.jobs, j.spec.Name); was != nil {
		if bytes.Equal(was.Spec, j.Spec) && was.Owner == j.Owner {
			return &apiv1.SubmitJobResponse{Job: l.statusLocked(was, time.Now())}, nil
		}
		if guard.MayUse(ctx, was.Owner) != nil {
			return nil, connect.NewError(connect.CodeAlreadyExists,
				fmt.Errorf("a job called %s runs already, and is another launcher's: choose another name", j.spec.Name))
		}
		return nil, connect.NewError(connect.CodeAlreadyExists,
			fmt.Errorf("a job called %s runs already (%s) and was submitted otherwise: cancel it, or choose another "+
				"name", j.spec.Name, was.ID))
	}
	if _, ok := l.mu.claims[j.spec.Name]; ok {
		return nil, connect.NewError(connect.CodeUnavailable,
			fmt.Errorf("a job called %s is being submitted: ask again in a moment", j.spec.Name))
	}
	if err := checkJobSlots(l.o, l.mu.jobs, l.mu.claims, guard.Peer(ctx).Owner()); err != nil {
		return nil, err
	}
	l.mu.claims[j.spec.Name] = claim{owner: j.Owner, over: make(chan struct{})}
	return nil, nil
}

// checkJobSlots returns an error if there is no slot for another job, or if launchers of the submitting owner have
// their share of the slots already. Callers without an owner are operators, or are not asked for their identity: they
// have no share of their own.
func checkJobSlots(o *Options, jobs map[string]*job, claims map[string]claim, owner string) error {
	active, held := len(claims), 0 // jobs that have not ended, of all owners and of this one
	for _, c := range claims {
		if c.owner == owner {
			held++
		}
	}
	for _, j := range jobs {
		if j.Phase().Ended() {
			continue
		}
		active++
		if j.Owner == owner {
			held++
		}
	}
	if active >= o.MaxJobs {
		return limitReached(fmt.Errorf("the control plane has %s that have not ended, as many as it may (--max-jobs): wait "+
			"for one to end, or have one cancelled", quantity.Of(active, "job")))
	}
	if owner == "" {
		return nil
	}
	if most := max(1, int(o.OwnerShare*float64(o.MaxJobs))); held >= most {
		return limitReached(fmt.Errorf("owner %s has %s that have not ended, as many as one owner may of the control "+
			"plane's %d (--owner-share of --max-jobs): wait for one to end, or cancel one (millrace jobs cancel)", owner,
			quantity.Of(held, "job"), o.MaxJobs))
	}
	return nil
}

// maxPieces is how many pieces of descriptions of data the jobs of all owners together may have: a quarter of what etcd
// holds. A description has names, rows and digests of the partitions, which a submitter may give, and up to 64 MiB.
const maxPieces = store.DefaultQuota / 4 / record.PieceBytes

// claimPieces notes the pieces of a job that is being stored. It returns an error if launchers of the submitting owner
// have their share of all pieces then. Callers without an owner have no share of their own.
func (l *leader) claimPieces(name, owner string, pieces int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := 0
	for _, c := range l.mu.claims {
		if c.owner == owner {
			held += c.pieces
		}
	}
	for _, j := range l.mu.jobs {
		if j.Owner == owner && !j.Phase().Ended() {
			for _, g := range j.editions {
				held += g.Pieces
			}
		}
	}
	most := int(l.o.OwnerShare * maxPieces)
	if owner != "" && held > 0 && held+pieces > most {
		return limitReached(fmt.Errorf("the partitions of job %s take %s to describe, and those of owner %s's other jobs "+
			"%s, at most %s of one owner's (--owner-share): wait for one to end, cancel one (millrace jobs cancel), or "+
			"put rows into fewer files", name, quantity.Text(int64(pieces)*record.PieceBytes), owner,
			quantity.Text(int64(held)*record.PieceBytes), quantity.Text(int64(most)*record.PieceBytes)))
	}
	c := l.mu.claims[name]
	c.pieces = pieces
	l.mu.claims[name] = c
	return nil
}

// runningJob returns the job of a name that has not ended, or nil if there is none.
func runningJob(lives *lifecycle.Machine, jobs map[string]*job, name string) *job {
	if life := lives.Running(name); life != nil {
		return jobs[life.ID]
	}
	return nil
}

// DescribeData implements the service.
func (s *Server) DescribeData(
	ctx context.Context, req *apiv1.DescribeDataRequest,
) (*apiv1.DescribeDataResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	data, err := l.selectPartitions(ctx, req.Partitions, req.Exclude, nil)
	if err != nil {
		return nil, l.wireError(err)
	}
	resp := &apiv1.DescribeDataResponse{Malformed: data.Malformed}
	if resp.Manifest, err = data.Manifest.MarshalJSON(); err == nil {
		resp.Columns, err = api.EncodeColumns(data.Columns)
	}
	if err != nil {
		return nil, l.wireError(err)
	}
	return resp, nil
}

// selectPartitions makes the data set of a job. If the leader is new or a node has just joined, it waits a short time
// for heartbeats. own describes files of the submitter's machine, or is nil.
func (l *leader) selectPartitions(
	ctx context.Context, patterns, exclude []string, own *apiv1.OwnFiles,
) (*fleet.Dataset, error) {
	begin := time.Now()
	for {
		l.mu.Lock()
		data, err := l.mu.fleet.SelectOrOwn(patterns, exclude, own)
		l.mu.Unlock()
		young := time.Since(l.began) < l.o.DeadAfter
		if err == nil && young && time.Since(l.began) < 2*l.o.Beat {
			err = fleet.ErrNotYet // nodes that no leader knew may be about to send a heartbeat
		}
		waited := time.Since(begin)
		if err == nil || !(young || errors.Is(err, fleet.ErrNotYet) && waited < l.o.DeadAfter) {
			if errors.Is(err, fleet.ErrNotYet) {
				err = fmt.Errorf("%w (waited for %v; ask again in a moment)", err, waited.Round(100*time.Millisecond))
			}
			return data, err
		}
		if wait.Sleep(ctx, l.o.Beat/10) != nil {
			return nil, fmt.Errorf("%w: %w", fleet.ErrNotYet, ctx.Err())
		}
		if l.ctx.Err() != nil {
			return nil, l.s.notLeader()
		}
	}
}

// checkPlan bounds the memory that a job uses in the leader, and refuses a token of another job before anything is
// stored. The rows of an edition that has no selection yet are not known: it is checked again with the selection.
func checkPlan(j *job, g *edition, most int) error {
	if g.needsSelection() {
		return nil
	}
	// The sizes that a node reports are bounded before the leader allocates anything for them.
	if err := dataset.CheckSplits(g.data.Manifest, g.Passing, j.Plan, most); err != nil {
		return fmt.Errorf("%w: an epoch: %w", record.ErrSpec, err)
	}
	plan, err := g.MakePlan(j.Plan)
	if err != nil {
		return fmt.Errorf("%w: %w", record.ErrSpec, err)
	}
	if plan.MiniBatches() == 0 && plan.LeftOut() == 0 {
		return fmt.Errorf("%w: the partitions hold no row", record.ErrSpec)
	}
	share := dataset.Share{Ranks: int(j.spec.Ranks), KeepTail: j.spec.RankTail == "keep"}
	if _, err := share.LeftOut(plan); err != nil {
		return fmt.Errorf("%w: %w", record.ErrSpec, err)
	}
	if j.Resume != nil && g.Number == 0 {
		if _, err := dataset.Resume(*j.Resume, g.Digest, plan.MiniBatches()); err != nil {
			return fmt.Errorf("%w: resume: %w", record.ErrSpec, err)
		}
	}
	return nil
}
