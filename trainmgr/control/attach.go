package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/control/ledger"
	"github.com/millrace/millrace/trainmgr/control/lifecycle"
	"github.com/millrace/millrace/trainmgr/control/record"
)

// attachWait is how long Attach waits for a job to be measured; then the launcher asks again.
const attachWait = 3 * time.Second

// Attach implements the service.
func (s *Server) Attach(ctx context.Context, req *apiv1.AttachRequest) (*apiv1.AttachResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	token, err := l.sealedToken(req)
	if err != nil {
		return nil, l.wireError(fmt.Errorf("attach to %s: %w", quoteShort(req.Id), err))
	}
	j, err := l.attachable(ctx, req.Id)
	if err != nil {
		return nil, l.wireError(err)
	}
	run, err := lifecycle.RunOf(req.Run)
	if err != nil {
		return nil, l.wireError(err)
	}
	resp, err := l.attachRank(ctx, j, req, run, token)
	if err == nil {
		err = l.storeState(ctx, j) // a later leader knows for which ranks the job waits, and which run each rank is of
	}
	if err != nil {
		return nil, l.wireError(err)
	}
	// The session before it is fenced off for good, or the caller is not attached.
	if err := l.sync(ctx, true); err != nil {
		return nil, l.wireError(fmt.Errorf("attach to %s: %w", j.ID, err))
	}
	return resp, nil
}

// sealedToken reads the token of a request; nil: it has none.
func (l *leader) sealedToken(req *apiv1.AttachRequest) (*dataset.Token, error) {
	if len(req.Token) == 0 {
		return nil, nil
	}
	t, sealed, err := record.UnwrapToken(l.key, req.Token)
	if err == nil && !sealed {
		err = fmt.Errorf("%w: it is not sealed: take the token that Checkpoint returns (a bare one is taken as a "+
			"job's resume)",
			dataset.ErrToken)
	}
	return &t, err
}

// attachable waits until a job can be attached to.
func (l *leader) attachable(ctx context.Context, id string) (*job, error) {
	t := time.NewTimer(attachWait)
	defer t.Stop()
	for {
		l.mu.Lock()
		j, err := l.find(ctx, id)
		if err != nil {
			l.mu.Unlock()
			return nil, err
		}
		phase, words, changed := j.Phase(), j.Words(), j.changed
		l.mu.Unlock()
		switch {
		case phase.Begun():
			return j, nil
		case phase == record.Done:
			return nil, j.doneError()
		case phase.Ended():
			return nil, connect.NewError(connect.CodeAborted, fmt.Errorf(
				"job %s has ended (%s): submit it again, with the trainer's token as resume", j.ID, words))
		}
		select {
		case <-changed:
		case <-t.C:
			return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("job %s is %s: ask again in a moment",
				j.ID, words))
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.ctx.Done():
			return nil, l.s.notLeader()
		}
	}
}

// doneError is the error of a caller that wants mini-batches of a job that has none left.
func (j *job) doneError() error {
	return connect.NewError(connect.CodeAborted, fmt.Errorf(
		"job %s is done: every mini-batch was acknowledged; submit the job again to go over the data once more", j.ID))
}

// attachRank makes the caller a rank's consumer. That is to be stored before the answer.
func (l *leader) attachRank(
	ctx context.Context, j *job, req *apiv1.AttachRequest, run lifecycle.Run, token *dataset.Token,
) (*apiv1.AttachResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if token == nil && !req.Resume {
		if err := l.checkRun(j, req.Rank, run, now); err != nil {
			return nil, err
		}
	}
	at, err := l.attachInLedger(j, req.Rank, token, now)
	if err != nil {
		return nil, err
	}
	j.Attached(lifecycle.Attachment{
		Session: at.Session, Run: run, AnnouncesEnd: req.SaysDone, Connection: l.s.connections.of(ctx),
	}, now)
	c := &j.launchers[req.Rank]
	c.stalledSeconds, c.report = c.stalledSeconds+c.report.GetStallSeconds(), nil
	l.settle(now)
	resp, err := l.attachResponse(j, at, now)
	if err != nil {
		return nil, err
	}
	if st, err := l.ledger.Status(j.ID, now); err == nil {
		j.WentBack(st.Epoch, st.Delivered, st.MiniBatches)
		l.settle(now)
	}
	l.logger.Info("rank attached", "job", j.ID, "rank", req.Rank, "epoch", at.Epoch, "token", token != nil)
	return resp, nil
}

// attachInLedger gives the caller the rank's session. An epoch that the token names is begun if need be. l.mu is held.
func (l *leader) attachInLedger(j *job, rank uint32, token *dataset.Token, now time.Time) (ledger.Attached, error) {
	if token != nil {
		g := j.generationOf(token.Epoch)
		if g == nil {
			return ledger.Attached{}, fmt.Errorf("attach to %s: %w: the job has no epoch %d (any more)", j.ID,
				dataset.ErrToken, token.Epoch)
		}
		if token.Job != g.Digest {
			return ledger.Attached{}, fmt.Errorf("attach to %s: %w: it is of %v, this epoch is of %v", j.ID,
				dataset.ErrOtherJob, token.Job, g.Digest)
		}
	}
	at, err := l.ledger.Attach(j.ID, rank, token, now)
	if errors.Is(err, ledger.ErrUnknown) && j.Rank(rank) != nil {
		l.settle(now) // begins the epoch that is needed
		at, err = l.ledger.Attach(j.ID, rank, token, now)
	}
	return at, err
}

// attachResponse says what a rank learns when it attaches. l.mu is held.
func (l *leader) attachResponse(j *job, at ledger.Attached, now time.Time) (*apiv1.AttachResponse, error) {
	g := j.generationOf(at.Epoch)
	if g == nil {
		return nil, fmt.Errorf("attach to %s: %w: the job has no epoch %d", j.ID, ledger.ErrUnknown, at.Epoch)
	}
	resp := &apiv1.AttachResponse{
		Job: l.status(j, now), Session: at.Session.Bytes(), Epoch: at.Epoch,
		TRowsPerSecond: j.State().T, MeanLength: g.data.MeanLength,
	}
	resp.Job.Digest, resp.Job.Rows = g.Digest[:], g.data.Manifest.Rows()
	var err error
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

// checkRun refuses a caller that would go on, without knowing, where another run stopped. l.mu is held.
func (l *leader) checkRun(j *job, rank uint32, caller lifecycle.Run, now time.Time) error {
	rank, consumed, err := j.ForeignRun(rank, caller, func(n uint32) (epoch, delivered uint64, err error) {
		return l.ledger.Progress(j.ID, n)
	})
	if err != nil || !consumed {
		return err
	}
	if j.Ending(now) {
		return j.doneError()
	}
	st, err := l.ledger.Rank(j.ID, rank, now)
	if err != nil {
		return err
	}
	return partlyConsumedError(j, st)
}

// partlyConsumedError is the error of a caller whose rank, or another of whose job's ranks, another run has consumed
// of.
func partlyConsumedError(j *job, st ledger.RankStatus) error {
	detail := &apiv1.PartlyConsumed{
		Job: j.ID, Rank: st.Rank, Epoch: st.Epoch, Epochs: j.spec.Epochs,
		Delivered: st.Delivered, Minibatches: st.Owned, Finished: j.Delivered(),
	}
	where := fmt.Sprintf("rank %d is in epoch %d of %d and has acknowledged %d of its %d mini-batches",
		st.Rank, st.Epoch+1, j.spec.Epochs, st.Delivered, st.Owned)
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
