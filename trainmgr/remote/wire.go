package remote

import (
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/remote/protocol"
)

// wireRanges converts ranges to their wire form.
func wireRanges(ranges []dataset.Range) []*apiv1.NumberRange {
	list := make([]*apiv1.NumberRange, len(ranges))
	for i, r := range ranges {
		list[i] = &apiv1.NumberRange{From: r.From, To: r.To}
	}
	return list
}

// wireRequest converts a lease call to its wire form.
func wireRequest(job string, q protocol.LeaseRequest) *apiv1.LeaseRequest {
	req := &apiv1.LeaseRequest{
		Id: job, Session: q.Session, Epoch: q.Epoch, SaysDone: true, Want: int32(q.Want), WaitSeconds: q.Wait.Seconds(),
		Held: q.Held, Fetched: q.Fetched,
	}
	for _, g := range q.Adopt {
		req.Adopt = append(req.Adopt, &apiv1.HeldLease{
			Lease: g.Lease, Epoch: g.Epoch, Split: uint32(g.Split), Node: g.Node, Drive: g.Drive, From: g.From, To: g.To,
		})
	}
	return req
}

// leaseAnswer reads the answer to a lease call.
func leaseAnswer(resp *apiv1.LeaseResponse) protocol.LeaseAnswer {
	a := protocol.LeaseAnswer{
		Fence: resp.Fence, UnknownSession: resp.UnknownSession, JobDone: resp.JobDone, EpochDone: resp.EpochDone,
		Adopt: resp.Adopt, Waiting: resp.Waiting, Revoked: resp.Revoked,
	}
	for _, g := range resp.Grants {
		a.Grants = append(a.Grants, protocol.Grant{
			Lease: g.GetLease(), Epoch: g.GetEpoch(), Split: int(g.GetSplit()), From: g.GetFrom(), To: g.GetTo(),
			Node: g.GetNode(), Drive: g.GetDrive(), URLs: g.GetUrls(), Own: g.GetOwn(),
			WithoutData: g.GetReach() == apiv1.ReachAny, Ticket: g.GetTicket(),
		})
	}
	for _, t := range resp.Tickets {
		a.Tickets = append(a.Tickets, protocol.RenewTicket{Lease: t.GetLease(), Ticket: t.GetTicket()})
	}
	return a
}
