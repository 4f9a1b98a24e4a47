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
	"github.com/millrace/millrace/trainmgr/control/presence"
	"github.com/millrace/millrace/trainmgr/control/record"
)

// Attach implements the service.
func (s *Server) Attach(ctx context.Context, req *apiv1.AttachRequest) (*apiv1.AttachResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	var token *dataset.Token
	if len(req.Token) > 0 {
		t, sealed, err := record.UnwrapToken(l.key, req.Token)
		if err == nil && !sealed {
			err = fmt.Errorf("%w: it is not sealed: take the token that Checkpoint returns (a bare one is taken as a job's resume)", dataset.ErrToken)
		}
		if err != nil {
			return nil, l.wire(fmt.Errorf("attach to %s: %w", shorten(req.Id), err))
		}
		token = &t
	}
	j, err := l.attachable(ctx, req.Id)
	if err != nil {
		return nil, l.wire(err)
	}
	caller, err := runOf(req.Run)
	if err != nil {
		return nil, l.wire(err)
	}
	now := time.Now()
	l.mu.Lock()
	var resp *apiv1.AttachResponse
	if token == nil && !req.Resume {
		err = l.ownRun(j, req.Rank, caller, now)
	}
	if err == nil {
		resp, err = l.attach(ctx, j, req.Rank, token, now)
	}
	if err == nil {
		j.hears(&j.ranks[req.Rank], req.SaysDone)
		j.belongs(&j.ranks[req.Rank], caller)
		l.reopen(j, now)
	}
	news := j.dirty
	l.mu.Unlock()
	if err == nil && news {
		err = l.storeState(ctx, j) // whoever leads knows whom the job waits for, and which run each rank is of
	}
	if err != nil {
		return nil, l.wire(err)
	}
	// Who was attached before is fenced off for good, or the caller is not attached.
	if err := l.sync(ctx, true); err != nil {
		return nil, l.wire(fmt.Errorf("attach to %s: %w", j.ID, err))
	}
	return resp, nil
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
		at, why, changed := j.Phase, j.Why, j.changed
		l.mu.Unlock()
		switch {
		case at.Begun():
			return j, nil
		case at == record.Done:
			return nil, j.isDone()
		case at.Ended():
			return nil, connect.NewError(connect.CodeAborted, fmt.Errorf("job %s has ended (%s): submit it again, with the trainer's token as resume", j.ID, at.Words(why)))
		}
		select {
		case <-changed:
		case <-t.C:
			return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("job %s is %s: ask again in a moment", j.ID, at.Words(why)))
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.ctx.Done():
			return nil, l.s.notLeader()
		}
	}
}

// isDone is the error of a caller that wants mini-batches of a job that has none left.
func (j *job) isDone() error {
	return connect.NewError(connect.CodeAborted, fmt.Errorf(
		"job %s is done: every mini-batch was acknowledged; submit the job again to go over the data once more", j.ID))
}

// attach makes the caller a rank's consumer. l.mu is held.
func (l *leader) attach(ctx context.Context, j *job, n uint32, token *dataset.Token, now time.Time) (*apiv1.AttachResponse, error) {
	if token != nil {
		g := j.generationOf(token.Epoch)
		if g == nil {
			return nil, fmt.Errorf("attach to %s: %w: the job has no epoch %d (any more)", j.ID, dataset.ErrToken, token.Epoch)
		}
		if token.Job != g.Digest {
			return nil, fmt.Errorf("attach to %s: %w: it is of %v, this epoch is of %v", j.ID, dataset.ErrOtherJob, token.Job, g.Digest)
		}
	}
	at, err := l.ledger.Attach(j.ID, n, token, now)
	if errors.Is(err, ledger.ErrUnknown) && int64(n) < int64(len(j.ranks)) {
		l.ready(now) // begins the epoch that is needed
		at, err = l.ledger.Attach(j.ID, n, token, now)
	}
	if err != nil {
		return nil, err
	}
	l.presence.Attach(presence.Rank{Job: j.ID, Number: n}, l.s.connections.of(ctx), now)
	l.attended(j)
	r := &j.ranks[n]
	if r.report != nil {
		r.stalled += r.report.StallSeconds
	}
	r.report, r.grants, r.revoked, r.session, r.adopted = nil, nil, nil, at.Session, true
	r.notify()
	l.ready(now)
	g := j.generationOf(at.Epoch)
	if g == nil {
		return nil, fmt.Errorf("attach to %s: %w: the job has no epoch %d", j.ID, ledger.ErrUnknown, at.Epoch)
	}
	resp := &apiv1.AttachResponse{
		Job: l.status(j, now), Session: at.Session.Bytes(), Epoch: at.Epoch, TRowsPerSecond: j.T, MeanLength: g.data.MeanLength,
	}
	resp.Job.Digest, resp.Job.Rows = g.Digest[:], g.data.Manifest.Rows()
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
	l.logger.Info("rank attached", "job", j.ID, "rank", n, "epoch", at.Epoch, "token", token != nil)
	return resp, nil
}
