package control

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/control/steering"
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
	c := &leaseCall{l: l, ctx: ctx, req: req, session: session}
	resp, err := c.serve()
	if err == nil {
		err = c.tickets.sign(l.signer) // without l.mu
	}
	if err != nil {
		return nil, l.wireError(err)
	}
	return resp, nil
}

func checkLeaseRequest(req *apiv1.LeaseRequest) error {
	many := len(req.Held) > maxHeld || len(req.Fetched) > maxHeld || len(req.Adopt) > maxHeld
	if many || req.Want < 0 || req.Want > maxWant {
		return fmt.Errorf("%w: %d leases held, %d wanted: at most %d and %d", ledger.ErrArgument, len(req.Held),
			req.Want, maxHeld, maxWant)
	}
	return steering.CheckReport(req.Report)
}

// waitOf returns how long a call waits for grants. A time that is not a number, or out of bounds, counts as 0.
func waitOf(req *apiv1.LeaseRequest) time.Duration {
	if !(req.WaitSeconds > 0) {
		return 0
	}
	return min(maxWait, time.Duration(min(req.WaitSeconds, maxWait.Seconds())*float64(time.Second)))
}

// leaseCall is one Lease call: it passes the rank's progress to the machine, waits for the answer, and puts it into a
// message.
type leaseCall struct {
	l       *leader
	ctx     context.Context // the caller's
	req     *apiv1.LeaseRequest
	session ledger.Session
	job     *job
	tickets tickets // to be signed without l.mu
}

// serve carries out the call.
func (c *leaseCall) serve() (*apiv1.LeaseResponse, error) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	j, err := c.l.findLocked(c.ctx, c.req.Id)
	if err != nil {
		return nil, err
	}
	c.job = j
	c.l.mu.lastCall++
	call, now := c.l.mu.lastCall, time.Now()
	a, err := c.l.mu.machine.Lease(j.Job, call, c.request(), now)
	if err != nil {
		c.l.settleLocked(now)
		return nil, err
	}
	if a == nil || a.Reported {
		j.steering.Called(c.session.Rank, c.req.Report)
	}
	var answered chan machine.Answered
	if a == nil {
		answered = make(chan machine.Answered, 1)
		c.l.mu.waiting[call] = answered
	}
	c.l.settleLocked(now)
	if a == nil {
		if a, err = c.waitLocked(call, answered); err != nil {
			return nil, err
		}
	}
	if err := c.ctx.Err(); err != nil {
		now := time.Now()
		c.l.mu.machine.Abandon(j.Job, call, c.session, a, now)
		delete(c.l.mu.waiting, call)
		c.l.settleLocked(now)
		return nil, err
	}
	return c.responseLocked(a)
}

// request returns what the caller says, as the machine takes it.
func (c *leaseCall) request() machine.LeaseRequest {
	r := machine.LeaseRequest{
		Session: c.session, Epoch: c.req.Epoch, Want: int(c.req.Want), Held: c.req.Held, Fetched: c.req.Fetched,
		Blocked: c.req.Report.GetBlocked(), AnnouncesEnd: c.req.SaysDone, Connection: c.l.s.connections.of(c.ctx),
	}
	for _, h := range c.req.Adopt {
		r.Adopt = append(r.Adopt, ledger.Lease{
			ID: h.Lease, Epoch: h.Epoch, Split: int(h.Split), From: h.From, To: h.To,
			Drive: ledger.DriveID{Node: h.Node, Name: h.Drive},
		})
	}
	return r
}

// waitLocked releases the lock until the machine answers the call. It returns no answer if the caller has gone.
func (c *leaseCall) waitLocked(call uint64, answered <-chan machine.Answered) (*machine.LeaseAnswer, error) {
	c.l.mu.Unlock()
	deadline := time.NewTimer(waitOf(c.req))
	defer deadline.Stop()
	select {
	case got := <-answered:
		c.l.mu.Lock()
		return &got.Answer, got.Err
	case <-deadline.C:
	case <-c.ctx.Done():
	case <-c.l.ctx.Done():
	}
	c.l.mu.Lock()
	switch {
	case c.l.ctx.Err() != nil: // The machine must not answer a call for which nobody waits.
		c.l.mu.machine.Abandon(c.job.Job, call, c.session, nil, time.Now())
		delete(c.l.mu.waiting, call)
		return nil, c.l.s.notLeader()
	case c.ctx.Err() == nil: // An answer that came meanwhile stays.
		now := time.Now()
		c.l.mu.machine.Expire(call, now)
		c.l.settleLocked(now)
	}
	select {
	case got := <-answered:
		return &got.Answer, got.Err
	default:
		return nil, nil
	}
}

// responseLocked puts an answer into a message.
func (c *leaseCall) responseLocked(a *machine.LeaseAnswer) (*apiv1.LeaseResponse, error) {
	resp := &apiv1.LeaseResponse{
		Fence: c.l.term.Fence(), Adopt: a.Adopt, UnknownSession: a.UnknownSession, JobDone: a.JobDone,
		EpochDone: a.EpochDone, Waiting: a.Waiting, Revoked: a.Revoked,
	}
	for _, g := range a.Grants {
		drive := c.l.mu.fleet.Drive(fleet.DriveID{Node: g.Drive.Node, Drive: g.Drive.Name})
		grant := &apiv1.Grant{
			Lease: g.ID, Epoch: g.Epoch, Split: uint32(g.Split), From: g.From, To: g.To,
			Node: g.Drive.Node, Urls: c.l.mu.fleet.Status(g.Drive.Node).GetUrls(), Drive: g.Drive.Name,
			Reach: reachOf(drive), Own: drive.GetServes() != nil,
		}
		if g.MiniBatch != g.From {
			grant.MiniBatch = &g.MiniBatch
		}
		resp.Grants = append(resp.Grants, grant)
	}
	if a.Served {
		c.issueTicketsLocked(resp, time.Now())
	}
	return resp, nil
}
