package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/record"
	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// Bounds of the lists in one call.
const (
	maxHeld   = 1 << 12 // leases
	maxRanges = 1 << 16 // of numbers
	maxWant   = 1 << 10 // splits
)

// Lease implements the service.
func (s *Server) Lease(ctx context.Context, req *apiv1.LeaseRequest) (*apiv1.LeaseResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	if err := checkLeaseRequest(req); err != nil {
		return nil, l.wireError(err)
	}
	session, err := ledger.ParseSession(req.Session)
	if err != nil {
		return &apiv1.LeaseResponse{UnknownSession: true}, nil
	}
	c := &leaseCall{l: l, ctx: ctx, req: req, session: session, resp: &apiv1.LeaseResponse{Fence: l.term.Fence()}}
	err = c.serve()
	if err == nil {
		err = c.tickets.sign(l.signer) // without l.mu
	}
	if err != nil {
		return nil, l.wireError(err)
	}
	return c.resp, nil
}

func checkLeaseRequest(req *apiv1.LeaseRequest) error {
	many := len(req.Held) > maxHeld || len(req.Fetched) > maxHeld || len(req.Adopt) > maxHeld
	if many || req.Want < 0 || req.Want > maxWant {
		return fmt.Errorf("%w: %d leases held, %d wanted: at most %d and %d", ledger.ErrArgument, len(req.Held),
			req.Want, maxHeld, maxWant)
	}
	return checkReport(req.Report)
}

// waitOf returns how long a call waits for grants. A time that is not a number, or out of bounds, counts as 0.
func waitOf(req *apiv1.LeaseRequest) time.Duration {
	if !(req.WaitSeconds > 0) {
		return 0
	}
	return min(maxWait, time.Duration(min(req.WaitSeconds, maxWait.Seconds())*float64(time.Second)))
}

// leaseCall is one Lease call: it takes the rank's progress, waits for grants, and answers. Its methods are called
// with l.mu held; only wait releases the lock meanwhile.
type leaseCall struct {
	l       *leader
	ctx     context.Context // the caller's
	req     *apiv1.LeaseRequest
	session ledger.Session
	job     *job
	rank    *lifecycle.Rank
	resp    *apiv1.LeaseResponse
	tickets tickets // to be signed without l.mu
}

// errAnswered ends a call whose answer is complete.
var errAnswered = errors.New("the call is answered")

// serve carries out the call.
func (c *leaseCall) serve() error {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	err := c.findRank()
	if err == nil {
		err = c.takeProgress()
	}
	if err == nil && c.wantsMore() {
		err = c.awaitGrants()
	}
	if err == nil {
		err = c.answer()
	}
	if errors.Is(err, errAnswered) {
		return nil
	}
	return err
}

// findRank finds the job and the rank, if leases can be granted.
func (c *leaseCall) findRank() error {
	j, err := c.l.find(c.ctx, c.req.Id)
	if err != nil {
		return err
	}
	c.job = j
	if err := c.checkEnded(); err != nil {
		return err
	}
	if j.Suspended() {
		j.Asked(time.Now())
		c.l.settle(time.Now())
	}
	if !j.Phase().Begun() || j.Suspended() {
		c.resp.Waiting = j.Words()
		return errAnswered
	}
	if c.rank = j.Rank(c.session.Rank); c.rank == nil {
		return c.unknownSession()
	}
	return nil
}

// checkEnded answers the call if the job is over.
func (c *leaseCall) checkEnded() error {
	switch {
	case c.job.Phase() == record.Done:
		c.resp.JobDone = true
		return errAnswered
	case c.job.Phase().Ended():
		return connect.NewError(connect.CodeAborted, fmt.Errorf("job %s has ended: %s", c.job.ID, c.job.Words()))
	}
	return nil
}

// unknownSession answers that the caller has to attach again.
func (c *leaseCall) unknownSession() error {
	c.resp.UnknownSession = true
	return errAnswered
}

// takeProgress extends the rank's leases and records the progress that the launcher reports.
func (c *leaseCall) takeProgress() error {
	now := time.Now()
	if err := c.hold(now); err != nil {
		if errors.Is(err, ledger.ErrSession) || errors.Is(err, ledger.ErrUnknown) {
			c.resp = &apiv1.LeaseResponse{Fence: c.resp.Fence}
			return c.unknownSession()
		}
		return err
	}
	c.job.Called(c.session.Rank, c.l.s.connections.of(c.ctx), now)
	c.l.settle(now)
	if c.req.Epoch >= c.job.EndEpoch() && !c.job.Follow {
		c.resp.JobDone = true // for this rank
		return errAnswered
	}
	return nil
}

// hold passes to the ledger the leases that the rank's launcher names. The launcher must show the leases of an
// earlier leader before any lease is extended or revoked.
func (c *leaseCall) hold(now time.Time) error {
	if c.rank.MustShow(c.session, c.l.term.Fence()) && len(c.req.Held) > 0 && len(c.req.Adopt) == 0 {
		c.resp.Adopt = true
		return nil
	}
	if err := c.adopt(now); err != nil {
		return err
	}
	progress := ledger.Progress{Held: c.req.Held, Fetched: c.req.Fetched, Blocked: c.req.Report.GetBlocked()}
	revoked, err := c.l.ledger.Hold(c.job.ID, c.session, progress, now)
	if err != nil {
		return err
	}
	c.rank.Held(c.session, slices.Concat(c.req.Held, c.req.Fetched), c.leased)
	c.job.Announces(c.session.Rank, c.req.SaysDone)
	c.resp.Revoked = append(c.resp.Revoked, revoked...)
	at := &c.job.launchers[c.session.Rank]
	at.called = true
	if c.req.Report != nil {
		at.progress = c.req.Report
		at.noteProfileCost(c.req.Report)
		if profile := c.req.Report.Profile; profile != nil && !proto.Equal(profile, at.profile) {
			at.profile = profile // the profile holds until the launcher sends another one
		}
	}
	return nil
}

// adopt takes over the leases of an earlier leader that the rank's launcher shows.
func (c *leaseCall) adopt(now time.Time) error {
	if len(c.req.Adopt) == 0 || c.rank.Adopted() {
		return nil
	}
	leases := make([]ledger.Lease, len(c.req.Adopt))
	for i, h := range c.req.Adopt {
		leases[i] = ledger.Lease{
			ID: h.Lease, Epoch: h.Epoch, Split: int(h.Split), From: h.From, To: h.To,
			Drive: ledger.DriveID{Node: h.Node, Name: h.Drive},
		}
	}
	refused, err := c.l.ledger.Adopt(c.job.ID, c.session, leases, now)
	if err != nil {
		return err
	}
	c.resp.Revoked = append(c.resp.Revoked, refused...)
	c.l.logger.Info("leases adopted", "job", c.job.ID, "rank", c.session.Rank,
		"adopted", len(leases)-len(refused), "refused", len(refused))
	return nil
}

func (c *leaseCall) leased(lease uint64) bool {
	return c.l.ledger.Leased(c.job.ID, c.session.Rank, lease)
}

// wantsMore reports whether the call waits for grants. A call that only reports does not change the want of another
// call of the rank.
func (c *leaseCall) wantsMore() bool {
	return c.req.Want > 0 && !c.resp.Adopt && c.job.editionOf(c.req.Epoch) != nil
}

// awaitGrants asks the ledger for pieces and waits until the rank has news, or the time is over.
func (c *leaseCall) awaitGrants() error {
	call, more := c.rank.Wants(int(c.req.Want))
	now := time.Now()
	if err := c.l.ledger.Want(c.job.ID, c.session, c.req.Epoch, more, now); err != nil {
		return err
	}
	c.l.settle(now)
	deadline := time.NewTimer(waitOf(c.req))
	defer deadline.Stop()
	for waiting := true; waiting && !c.rank.HasNews() && !c.job.Phase().Ended(); {
		waiting = c.wait(deadline.C)
		if c.l.ctx.Err() != nil {
			return c.l.s.notLeader()
		}
		if c.rank.FencedOff(c.session) {
			return c.unknownSession()
		}
	}
	if err := c.checkEnded(); err != nil {
		return err
	}
	if err := c.withdraw(call); err != nil {
		return err
	}
	return c.ctx.Err()
}

// wait releases the lock until the rank has news. It reports false if the time is over, the caller has gone, or the
// term has ended.
func (c *leaseCall) wait(deadline <-chan time.Time) bool {
	wake := c.job.launchers[c.session.Rank].wake.Changed()
	c.l.mu.Unlock()
	defer c.l.mu.Lock()
	select {
	case <-wake:
		return true
	case <-deadline:
	case <-c.ctx.Done():
	case <-c.l.ctx.Done():
	}
	return false
}

// withdraw ends the want of the call, unless a later call of the rank waits by now. If the caller has gone, withdraw
// returns the leases that were granted for the call and that no answer contained, so that they can be granted again.
func (c *leaseCall) withdraw(call uint64) error {
	if !c.rank.Withdraws(call) {
		return nil
	}
	now := time.Now()
	err := c.l.ledger.Want(c.job.ID, c.session, c.req.Epoch, 0, now)
	if err == nil && c.ctx.Err() != nil {
		err = c.l.ledger.Release(c.job.ID, c.session, c.rank.TakeUnanswered(), ledger.Stopped, "", now)
	}
	c.l.settle(now)
	return err
}

// answer fills in the rank's grants and its status.
func (c *leaseCall) answer() error {
	now, j := time.Now(), c.job
	grants, revoked := c.rank.Answer(c.leased)
	for _, g := range grants {
		c.resp.Grants = append(c.resp.Grants, &apiv1.Grant{
			Lease: g.ID, Epoch: g.Epoch, Split: uint32(g.Split), From: g.From, To: g.To,
			Node: g.Drive.Node, Urls: c.l.fleet.Status(g.Drive.Node).GetUrls(), Drive: g.Drive.Name,
			Reach: c.l.reachOf(g.Drive), Own: c.l.servedRank(fleet.DriveID{Node: g.Drive.Node, Drive: g.Drive.Name}) != nil,
		})
	}
	c.issueTickets(now)
	c.resp.Revoked = append(c.resp.Revoked, revoked...)
	st, err := c.l.ledger.Rank(j.ID, c.session.Rank, now)
	if err != nil {
		return err
	}
	c.resp.EpochDone = st.Epoch == c.req.Epoch && st.Out
	if len(c.resp.Grants) == 0 && !c.resp.EpochDone {
		c.resp.Waiting = st.Waiting
		if j.editionOf(c.req.Epoch) == nil {
			c.resp.Waiting = "new partitions have not appeared yet"
		}
	}
	return nil
}
