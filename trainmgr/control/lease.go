package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
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

// Lease implements the service.
func (s *Server) Lease(ctx context.Context, req *apiv1.LeaseRequest) (*apiv1.LeaseResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	var sheet tickets
	resp, err := l.lease(ctx, req, &sheet)
	if err == nil {
		err = sheet.sign(l.signer) // without l.mu
	}
	if err != nil {
		return nil, l.wire(err)
	}
	return resp, nil
}

// lease answers a Lease call, but for the tickets, which are on the sheet.
func (l *leader) lease(ctx context.Context, req *apiv1.LeaseRequest, sheet *tickets) (*apiv1.LeaseResponse, error) {
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
	l.heard(ctx, j, session.Rank, now)
	if req.Epoch >= j.end() && !j.spec.Follow {
		resp.JobDone = true // for this rank
		return resp, nil
	}
	// A report leaves alone what another call of the rank waits for.
	if req.Want == 0 || resp.Adopt || j.generationOf(req.Epoch) == nil {
		l.ready(now)
		return resp, l.answer(ctx, j, r, session, req, resp, sheet)
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
			return nil, l.s.notLeader()
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
	return resp, l.answer(ctx, j, r, session, req, resp, sheet)
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
func (l *leader) answer(ctx context.Context, j *job, r *rank, session ledger.Session, req *apiv1.LeaseRequest, resp *apiv1.LeaseResponse, sheet *tickets) error {
	now, epoch := time.Now(), req.Epoch
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
	l.issue(ctx, j, session, req, resp, sheet, now)
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
