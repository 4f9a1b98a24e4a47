package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/control/ledger"
	"github.com/millrace/millrace/trainmgr/control/record"
)

// Bounds of what one call names.
const (
	maxHeld   = 1 << 12 // leases
	maxRanges = 1 << 16 // of numbers
	maxWant   = 1 << 10 // splits
	// attachWait is how long Attach waits for a job to be measured; then the launcher asks again.
	attachWait = 3 * time.Second
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
	now := time.Now()
	l.mu.Lock()
	resp, err := l.attach(j, req.Rank, token, now)
	news := false
	if err == nil {
		news = j.hears(&j.ranks[req.Rank], req.SaysDone)
		l.reopen(j, now)
	}
	l.mu.Unlock()
	if err == nil && news {
		err = l.storeState(ctx, j) // whoever leads knows whom the job waits for
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

// attach makes the caller a rank's consumer. l.mu is held.
func (l *leader) attach(j *job, n uint32, token *dataset.Token, now time.Time) (*apiv1.AttachResponse, error) {
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

// Lease implements the service.
func (s *Server) Lease(ctx context.Context, req *apiv1.LeaseRequest) (*apiv1.LeaseResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	if len(req.Held) > maxHeld || len(req.Fetched) > maxHeld || len(req.Adopt) > maxHeld || req.Want < 0 || req.Want > maxWant {
		return nil, l.wire(fmt.Errorf("%w: %d leases held, %d wanted: at most %d and %d", ledger.ErrArgument, len(req.Held), req.Want, maxHeld, maxWant))
	}
	session, err := ledger.ParseSession(req.Session)
	if err != nil {
		return &apiv1.LeaseResponse{UnknownSession: true}, nil
	}
	// A time that is not a number, or out of bounds, waits for nothing.
	wait := time.Duration(0)
	if req.WaitSeconds > 0 {
		wait = min(maxWait, time.Duration(min(req.WaitSeconds, maxWait.Seconds())*float64(time.Second)))
	}
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	j, err := l.find(ctx, req.Id)
	if err != nil {
		return nil, err
	}
	resp := &apiv1.LeaseResponse{Fence: l.term.Fence()}
	if over, err := leaseEnded(j, resp); over || err != nil {
		return resp, err
	}
	if !j.Phase.Begun() {
		resp.Waiting = j.Phase.Words(j.Why)
		return resp, nil
	}
	r := l.rank(j.ID, session.Rank)
	if r == nil {
		resp.UnknownSession = true
		return resp, nil
	}
	if err := l.hold(j, r, session, req, resp, now); err != nil {
		if errors.Is(err, ledger.ErrSession) || errors.Is(err, ledger.ErrUnknown) {
			return &apiv1.LeaseResponse{Fence: l.term.Fence(), UnknownSession: true}, nil
		}
		return nil, l.wire(err)
	}
	if req.Epoch >= j.end() && !j.spec.Follow {
		resp.JobDone = true // for this rank
		return resp, nil
	}
	// A report leaves alone what another call of the rank waits for.
	if req.Want == 0 || resp.Adopt || j.generationOf(req.Epoch) == nil {
		l.ready(now)
		return resp, l.answer(j, r, session, req.Epoch, resp)
	}
	// What it was granted and has not heard of is of what it wants.
	if err := l.ledger.Want(j.ID, session, req.Epoch, max(0, int(req.Want)-len(r.grants)), now); err != nil {
		return nil, l.wire(err)
	}
	r.asks++
	asks := r.asks
	l.ready(now)
	for len(r.grants) == 0 && len(r.revoked) == 0 && !j.Phase.Ended() {
		wake := r.wake
		l.mu.Unlock()
		waited := true
		select {
		case <-wake:
		case <-deadline.C:
			waited = false
		case <-ctx.Done():
			waited = false
		case <-l.ctx.Done():
			waited = false
		}
		l.mu.Lock()
		if l.ctx.Err() != nil {
			return nil, s.notLeader()
		}
		if r.session != session && r.session != (ledger.Session{}) {
			resp.UnknownSession = true // another has attached meanwhile
			return resp, nil
		}
		if !waited {
			break
		}
	}
	if over, err := leaseEnded(j, resp); over || err != nil {
		return resp, err
	}
	if err := l.withdraw(j, r, session, req.Epoch, asks, ctx.Err() != nil); err != nil {
		return nil, l.wire(err)
	}
	if err := ctx.Err(); err != nil {
		return nil, l.wire(err)
	}
	return resp, l.answer(j, r, session, req.Epoch, resp)
}

// withdraw ends what a Lease call wanted, unless a later call of the rank waits by now. When the caller has gone, what came for it and
// was never said goes back, for others to have. l.mu is held.
func (l *leader) withdraw(j *job, r *rank, session ledger.Session, epoch, asks uint64, gone bool) error {
	if r.asks != asks {
		return nil
	}
	now := time.Now()
	err := l.ledger.Want(j.ID, session, epoch, 0, now)
	if err == nil && gone {
		var back []uint64
		r.grants = slices.DeleteFunc(r.grants, func(g offered) bool {
			if !g.said {
				back = append(back, g.ID)
			}
			return !g.said
		})
		err = l.ledger.Release(j.ID, session, back, ledger.Stopped, "", now)
	}
	l.ready(now)
	return err
}

// leaseEnded answers for a job that is over.
func leaseEnded(j *job, resp *apiv1.LeaseResponse) (bool, error) {
	switch {
	case j.Phase == record.Done:
		resp.JobDone = true
		return true, nil
	case j.Phase.Ended():
		return true, connect.NewError(connect.CodeAborted, fmt.Errorf("job %s has ended: %s", j.ID, j.Phase.Words(j.Why)))
	}
	return false, nil
}

// hold extends what a rank has, and takes its report. l.mu is held.
func (l *leader) hold(j *job, r *rank, session ledger.Session, req *apiv1.LeaseRequest, resp *apiv1.LeaseResponse, now time.Time) error {
	if !r.adopted && session.Fence != l.term.Fence() && len(req.Held) > 0 && len(req.Adopt) == 0 {
		// What it holds was granted by an earlier leader: this one must hear of it before it can extend or revoke any.
		resp.Adopt = true
		return nil
	}
	if len(req.Adopt) > 0 && !r.adopted {
		leases := make([]ledger.Lease, len(req.Adopt))
		for i, h := range req.Adopt {
			leases[i] = ledger.Lease{ID: h.Lease, Epoch: h.Epoch, Split: int(h.Split), From: h.From, To: h.To, Drive: ledger.DriveID{Node: h.Node, Name: h.Drive}}
		}
		revoked, err := l.ledger.Adopt(j.ID, session, leases, now)
		if err != nil {
			return err
		}
		resp.Revoked = append(resp.Revoked, revoked...)
		l.logger.Info("leases adopted", "job", j.ID, "rank", session.Rank, "adopted", len(leases)-len(revoked), "refused", len(revoked))
	}
	revoked, err := l.ledger.Hold(j.ID, session, ledger.Report{Held: req.Held, Fetched: req.Fetched, Blocked: req.Report.GetBlocked()}, now)
	if err != nil {
		return err
	}
	r.named(req.Held, req.Fetched)
	r.grants = slices.DeleteFunc(r.grants, func(g offered) bool { return !l.ledger.Leased(j.ID, session.Rank, g.ID) })
	r.adopted, r.session = true, session
	j.hears(r, req.SaysDone)
	resp.Revoked = append(resp.Revoked, revoked...)
	if req.Report != nil {
		r.report = req.Report
	}
	return nil
}

// named takes note that the rank knows of leases.
func (r *rank) named(lists ...[]uint64) {
	if len(r.grants) == 0 {
		return
	}
	known := map[uint64]bool{}
	for _, ids := range lists {
		for _, id := range ids {
			known[id] = true
		}
	}
	r.grants = slices.DeleteFunc(r.grants, func(g offered) bool { return known[g.ID] })
}

// answer fills in what a rank is granted and where it stands. l.mu is held.
func (l *leader) answer(j *job, r *rank, session ledger.Session, epoch uint64, resp *apiv1.LeaseResponse) error {
	now := time.Now()
	for i := range r.grants {
		g := &r.grants[i]
		if !l.ledger.Leased(j.ID, session.Rank, g.ID) {
			continue // acknowledged, or given back, while this call waited
		}
		g.said = true
		resp.Grants = append(resp.Grants, &apiv1.Grant{
			Lease: g.ID, Epoch: g.Epoch, Split: uint32(g.Split), From: g.From, To: g.To,
			Node: g.Drive.Node, Urls: l.fleet.Status(g.Drive.Node).GetUrls(), Drive: g.Drive.Name,
		})
	}
	resp.Revoked = append(resp.Revoked, r.revoked...)
	r.revoked = nil
	st, err := l.ledger.Rank(j.ID, session.Rank, now)
	if err != nil {
		return l.wire(err)
	}
	resp.EpochDone = st.Epoch == epoch && st.Out
	if len(resp.Grants) == 0 && !resp.EpochDone {
		resp.Waiting = st.Waiting
		if j.generationOf(epoch) == nil {
			resp.Waiting = "new partitions have not appeared yet"
		}
	}
	return nil
}

// Acknowledge implements the service.
func (s *Server) Acknowledge(ctx context.Context, req *apiv1.AcknowledgeRequest) (*apiv1.AcknowledgeResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	if len(req.Numbers) > maxRanges {
		return nil, l.wire(fmt.Errorf("%w: %d ranges of numbers, at most %d", ledger.ErrArgument, len(req.Numbers), maxRanges))
	}
	session, err := ledger.ParseSession(req.Session)
	if err != nil {
		return nil, l.wire(err)
	}
	runs := make([]dataset.Run, len(req.Numbers))
	for i, n := range req.Numbers {
		runs[i] = dataset.Run{From: n.GetFrom(), To: n.GetTo()}
	}
	now := time.Now()
	l.mu.Lock()
	j, err := l.find(ctx, req.Id)
	if err != nil {
		l.mu.Unlock()
		return nil, err
	}
	if j.Phase.Ended() {
		l.mu.Unlock()
		if j.Phase == record.Done { // everything was acknowledged, this too: its answer was lost
			return &apiv1.AcknowledgeResponse{Fence: l.term.Fence()}, nil
		}
		return nil, connect.NewError(connect.CodeAborted, fmt.Errorf("job %s has ended: %s", j.ID, j.Phase.Words(j.Why)))
	}
	err = l.ledger.Acknowledge(j.ID, session, req.Epoch, runs, now)
	if err == nil {
		for _, r := range runs {
			j.rows += float64(r.To-r.From) * float64(j.plan.Batch)
		}
	}
	l.ready(now)
	dirty := l.ledger.Pending() > 0
	l.mu.Unlock()
	if err == nil {
		err = l.sync(ctx, dirty)
	}
	if err != nil {
		return nil, l.wire(fmt.Errorf("acknowledge to %s: %w", j.ID, err))
	}
	return &apiv1.AcknowledgeResponse{Fence: l.term.Fence()}, nil
}

// Release implements the service.
func (s *Server) Release(ctx context.Context, req *apiv1.ReleaseRequest) (*apiv1.ReleaseResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	if len(req.Leases) > maxHeld || len(req.Reason) > 1<<12 {
		return nil, l.wire(fmt.Errorf("%w: %d leases for a reason of %d bytes, at most %d and 4096", ledger.ErrArgument, len(req.Leases), len(req.Reason), maxHeld))
	}
	session, err := ledger.ParseSession(req.Session)
	if err != nil {
		return nil, l.wire(err)
	}
	kind, why, _ := strings.Cut(req.Reason, ":")
	reason, through := ledger.Stopped, kind == "done"
	switch kind {
	case "stop", "done", "":
	case "node":
		reason = ledger.NodeFailed
	case "data":
		reason = ledger.DataFailed
	default:
		return nil, l.wire(fmt.Errorf("%w: reason %s: want stop, done, or node or data with what went wrong behind a colon", ledger.ErrArgument, shorten(req.Reason)))
	}
	j, news, err := l.release(ctx, req.Id, session, req.Leases, reason, strings.ToValidUTF8(strings.TrimSpace(why), "?"), through)
	if err == nil && news {
		err = l.storeState(ctx, j)
		j.poke()
	}
	if err != nil {
		return nil, l.wire(err)
	}
	return &apiv1.ReleaseResponse{}, nil
}

// release takes leases back, and hears that a rank is through; news says that this is to be stored.
func (l *leader) release(ctx context.Context, id string, session ledger.Session, leases []uint64, reason ledger.Reason, why string, through bool) (j *job, news bool, err error) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if j, err = l.find(ctx, id); err != nil || j.Phase.Ended() {
		return j, false, err
	}
	if err := l.ledger.Release(j.ID, session, leases, reason, why, now); err != nil {
		return j, false, err
	}
	if through {
		news = j.hears(&j.ranks[session.Rank], false)
	}
	l.ready(now)
	return j, news, nil
}

// Checkpoint implements the service.
func (s *Server) Checkpoint(ctx context.Context, req *apiv1.CheckpointRequest) (*apiv1.CheckpointResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	token, dirty, err := l.checkpoint(ctx, req)
	if err == nil {
		// The token says no more than what is durable.
		err = l.sync(ctx, dirty)
	}
	if err != nil {
		return nil, l.wire(err)
	}
	b, err := token.MarshalBinary()
	if err != nil {
		return nil, l.wire(err)
	}
	return &apiv1.CheckpointResponse{Token: record.WrapToken(l.key, b)}, nil
}

func (l *leader) checkpoint(ctx context.Context, req *apiv1.CheckpointRequest) (dataset.Token, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j, err := l.find(ctx, req.Id)
	if err != nil {
		return dataset.Token{}, false, err
	}
	if !j.Phase.Begun() {
		return dataset.Token{}, false, connect.NewError(connect.CodeAborted, fmt.Errorf("job %s is %s: there is nothing to resume", j.ID, j.Phase.Words(j.Why)))
	}
	var token dataset.Token
	if len(req.Session) == 0 {
		token, err = l.ledger.Token(j.ID)
	} else {
		var session ledger.Session
		if session, err = ledger.ParseSession(req.Session); err == nil {
			if r := l.rank(j.ID, session.Rank); r != nil && r.session != session && r.session != (ledger.Session{}) {
				return token, false, ledger.ErrSession
			}
			token, err = l.ledger.RankToken(j.ID, session.Rank)
		}
	}
	return token, l.ledger.Pending() > 0, err
}
