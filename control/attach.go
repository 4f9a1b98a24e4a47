package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
)

// attachWait is how long Attach waits until a job is measured; afterwards the launcher calls again.
const attachWait = 3 * time.Second

// attachCall is one Attach call: it waits until the job can be attached to, gives the caller the rank's session, and
// stores the session.
type attachCall struct {
	l     *leader
	ctx   context.Context // the caller's
	req   *apiv1.AttachRequest
	run   lifecycle.Run
	token *dataset.Token // nil: the caller has none
	job   *job
}

// Attach implements the service.
func (s *Server) Attach(ctx context.Context, req *apiv1.AttachRequest) (*apiv1.AttachResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	c := &attachCall{l: l, ctx: ctx, req: req}
	resp, err := c.serve()
	if err != nil {
		return nil, l.wireError(err)
	}
	return resp, nil
}

// serve carries out the call. It answers when the new session is durable, and with it the end of the earlier
// session. Either the earlier session is fenced off permanently, or the caller is not attached.
func (c *attachCall) serve() (*apiv1.AttachResponse, error) {
	if err := c.readToken(); err != nil {
		return nil, fmt.Errorf("attach to %s: %w", quoteShort(c.req.Id), err)
	}
	var err error
	if c.run, err = lifecycle.RunOf(c.req.Run); err != nil {
		return nil, err
	}
	resp, err := c.attachWhenBegun()
	if err != nil {
		return nil, err
	}
	// A later leader needs the ranks for which the job waits, and the run of each rank.
	if err := c.l.storeState(c.ctx, c.job); err != nil {
		return nil, err
	}
	if err := c.l.sync(c.ctx, true); err != nil {
		return nil, fmt.Errorf("attach to %s: %w", c.job.ID, err)
	}
	return resp, nil
}

// readToken reads the token of the request, if it has one.
func (c *attachCall) readToken() error {
	if len(c.req.Token) == 0 {
		return nil
	}
	t, sealed, err := record.UnwrapToken(c.l.key, c.req.Token)
	if err == nil && !sealed {
		err = fmt.Errorf("%w: it is not sealed: take the token that Checkpoint returns (a bare one is taken as a "+
			"job's resume)", dataset.ErrToken)
	}
	c.token = &t
	return err
}

// attachWhenBegun waits until the job can be attached to, and makes the caller a rank's consumer.
func (c *attachCall) attachWhenBegun() (*apiv1.AttachResponse, error) {
	t := time.NewTimer(attachWait)
	defer t.Stop()
	asks := time.NewTicker(attachWait / 10)
	defer asks.Stop()
	for {
		resp, changed, err := c.tryAttach()
		var early *machine.NotBegunError
		if !errors.As(err, &early) {
			return resp, err
		}
		select {
		case <-changed:
		case <-asks.C:
		case <-t.C:
			return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("job %s is %s: ask again in a moment",
				early.Job, early.Words))
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		case <-c.l.ctx.Done():
			return nil, c.l.s.notLeader()
		}
	}
}

// tryAttach makes the caller a rank's consumer, if the job has begun. The caller of tryAttach stores the change before
// it answers. changed is closed when the job's phase changes.
func (c *attachCall) tryAttach() (resp *apiv1.AttachResponse, changed <-chan struct{}, err error) {
	l := c.l
	l.mu.Lock()
	defer l.mu.Unlock()
	j, err := l.findLocked(c.ctx, c.req.Id)
	if err != nil {
		return nil, nil, err
	}
	c.job = j
	if j.Plan.Boundary != dataset.BoundaryPartition && !c.req.Joins {
		return nil, nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("the mini-batches of job %s go on "+
			"across partitions (boundary %v), and this launcher does not join their fragments: upgrade the launcher", j.ID,
			j.Plan.Boundary))
	}
	now := time.Now()
	at, err := l.mu.machine.Attach(j.Job, machine.AttachRequest{
		Rank: c.req.Rank, Run: c.run, Token: c.token, Resumes: c.req.Resume, AnnouncesEnd: c.req.SaysDone,
		Connection: l.s.connections.of(c.ctx),
	}, now)
	if err == nil {
		j.steering.Attached(c.req.Rank, at.SameRun)
	}
	l.settleLocked(now)
	if err != nil {
		return nil, j.changed.Changed(), c.attachErrorLocked(err, now)
	}
	if resp, err = c.responseLocked(at.Attached, now); err != nil {
		return nil, nil, err
	}
	(&conductor{l, j}).reviewSharesLocked(now)
	l.logger.Info("rank attached", "job", j.ID, "rank", c.req.Rank, "epoch", at.Epoch, "token", c.token != nil)
	return resp, nil, nil
}

// attachErrorLocked returns the error of a caller that is not attached, as the caller gets it.
func (c *attachCall) attachErrorLocked(err error, now time.Time) error {
	j := c.job
	var ended *machine.EndedError
	var early *machine.NotBegunError
	var consumed *machine.ConsumedError
	switch {
	case errors.Is(err, machine.ErrDone):
		return j.doneError()
	case errors.As(err, &ended):
		return connect.NewError(connect.CodeAborted, fmt.Errorf(
			"job %s has ended (%s): submit it again, with the trainer's token as resume", j.ID, ended.Words))
	case errors.As(err, &early):
		if j.selecting != nil && j.Phase() == record.Preparing {
			early.Words = c.l.statusLocked(j, now).State
		}
	case errors.As(err, &consumed):
		return partlyConsumedError(j, consumed.Rank)
	}
	return err
}

// doneError is the error of a caller that wants mini-batches of a job without any left.
func (j *job) doneError() error {
	return connect.NewError(connect.CodeAborted, fmt.Errorf(
		"job %s is done: every mini-batch was acknowledged; submit the job again to go over the data once more", j.ID))
}

// responseLocked returns the answer to a rank that attaches.
func (c *attachCall) responseLocked(at ledger.Attached, now time.Time) (*apiv1.AttachResponse, error) {
	j := c.job
	g := j.editionOf(at.Epoch)
	if g == nil {
		return nil, fmt.Errorf("attach to %s: %w: the job has no epoch %d", j.ID, ledger.ErrUnknown, at.Epoch)
	}
	resp := &apiv1.AttachResponse{
		Job: c.l.statusLocked(j, now), Session: at.Session.Bytes(), Epoch: at.Epoch,
		TRowsPerSecond: j.State().T, MeanLength: g.data.MeanLength,
	}
	if j.steering.Divides() {
		s := j.supply(c.l.mu.fleet, c.l.mu.upkeep, g)
		own, others := s.Kinds(c.req.Rank)
		c.l.logger.Debug("keys of a rank's profile", "job", j.ID, "rank", c.req.Rank, "own_workers", own, "other_workers",
			others)
		resp.ProfileKeys = j.steering.ProfileKeys(g.resolved.Canonical(), own, others)
	}
	resp.Job.Digest, resp.Job.Rows, resp.Passing = g.Digest[:], g.rows(), g.Passing
	resp.Malformed = g.data.Malformed
	var err error
	if resp.Columns, err = api.EncodeColumns(g.data.Columns); err != nil {
		return nil, err
	}
	if resp.Token, err = at.Token.MarshalBinary(); err != nil {
		return nil, err
	}
	if resp.Manifest, err = g.data.Manifest.MarshalJSON(); err != nil {
		return nil, err
	}
	if resp.TensorSchema, err = g.tensorSchema(); err != nil {
		return nil, err
	}
	for _, o := range at.Owned {
		resp.Owned = append(resp.Owned, &apiv1.NumberRange{From: o.From, To: o.To})
	}
	return resp, nil
}

// partlyConsumedError is the error of a caller if another run has consumed mini-batches of its rank, or of another
// rank of the job.
func partlyConsumedError(j *job, st ledger.RankStatus) error {
	detail := &apiv1.PartlyConsumed{
		Job: j.ID, Rank: st.Rank, Epoch: st.Epoch, Epochs: j.EndEpoch(),
		Delivered: st.Delivered, Minibatches: st.Owned, Finished: j.Delivered(),
	}
	where := fmt.Sprintf("rank %d is in epoch %d of %d and has acknowledged %d of its %d mini-batches",
		st.Rank, st.Epoch+1, j.EndEpoch(), st.Delivered, st.Owned)
	if j.Delivered() {
		where = "every mini-batch was acknowledged, and its trainers have not said that they are through"
	}
	err := connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf(
		"job %s was partly consumed by another run: %s. Give the state or token of your last checkpoint, or say "+
			"resume to go on without what was acknowledged; "+
			"for all of the data submit the job under another name, or cancel this one first. If this is a rank of "+
			"the same run, give all of its ranks the same run", j.ID, where))
	d, detailErr := connect.NewErrorDetail(detail)
	if detailErr != nil {
		return detailErr
	}
	err.AddDetail(d)
	return err
}
