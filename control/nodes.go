package control

import (
	"context"
	"strings"
	"time"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/guard"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/store"
	"github.com/millrace/millrace/control/upkeep"
	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// Heartbeat implements the service.
func (s *Server) Heartbeat(ctx context.Context, req *apiv1.HeartbeatRequest) (*apiv1.HeartbeatResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	now, wall := time.Now(), seconds(time.Now())
	l.mu.Lock()
	if err := checkRegistration(l.mu.jobs, guard.Peer(ctx), req.GetStatus()); err != nil {
		l.mu.Unlock()
		return nil, err
	}
	answer, events, err := l.mu.fleet.Beat(now, wall, req.Status)
	l.nodeEventsLocked(events)
	var back []uint64
	var seen uint64
	if err == nil {
		node := req.Status.Name
		l.mu.nearby[node] = calledFromThisMachine(ctx)
		l.mu.upkeep.Reported(nodeReport(l.mu.fleet, node))
		l.settleLocked(now)
		if req.ReturnedFence == l.term.Fence() {
			seen = req.ReturnedSeen
		}
		back, seen = l.mu.upkeep.Returned(node, seen, now)
	}
	l.mu.Unlock()
	if err != nil {
		return nil, l.wireError(err)
	}
	return &apiv1.HeartbeatResponse{
		Protocol: apiv1.Protocol, Leader: s.url, Fence: l.term.Fence(), WantInventory: answer.WantInventory,
		IntervalSeconds: l.o.Beat.Seconds(), DeadAfterSeconds: l.o.DeadAfter.Seconds(), ClockSeconds: wall,
		TicketKey: l.signer.Key(), TicketsRequired: !l.o.TicketsOptional, Returned: back, ReturnedSeen: seen,
	}, nil
}

// seconds returns a time as Unix time in seconds.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// ListNodes implements the service.
func (s *Server) ListNodes(_ context.Context, _ *apiv1.ListNodesRequest) (*apiv1.ListNodesResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	records := l.mu.fleet.Records(now, true)
	addTroubles(records, l.mu.machine.Ledger.Drives(), now)
	return &apiv1.ListNodesResponse{Nodes: records}, nil
}

// DrainNode implements the service.
func (s *Server) DrainNode(ctx context.Context, req *apiv1.DrainNodeRequest) (*apiv1.DrainNodeResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	was := l.mu.fleet.Draining(req.Node)
	err = l.mu.fleet.Drain(req.Node, req.Drain)
	stored, _ := l.mu.fleet.Stored(req.Node)
	l.mu.Unlock()
	if err != nil {
		return nil, l.wireError(err)
	}
	// An operator's request must outlive this leader.
	if err := l.commit(ctx, store.Put(record.NodePrefix+req.Node, stored)); err != nil {
		return nil, l.wireError(err)
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if was != req.Drain {
		l.logger.Info("node", "node", req.Node, "drain", req.Drain)
	}
	l.mu.upkeep.Reported(nodeReport(l.mu.fleet, req.Node))
	l.settleLocked(now)
	resp := &apiv1.DrainNodeResponse{}
	for _, d := range l.mu.machine.Ledger.Drives() {
		if d.Drive.Node == req.Node {
			resp.Leases += int32(d.Leases)
		}
	}
	return resp, nil
}

// nodeEventsLocked passes the events of the fleet to the keeper of the nodes.
func (l *leader) nodeEventsLocked(events []fleet.Event) {
	for _, e := range events {
		switch e.Kind {
		case fleet.Joined, fleet.Restarted:
			what := "joined"
			if e.Kind == fleet.Restarted {
				what = "restarted"
			}
			st := l.mu.fleet.Status(e.Node)
			l.logger.Info("node "+what, "node", e.Node, "incarnation", st.Incarnation, "version", st.Version, "drives",
				len(st.Drives))
			l.mu.upkeep.Joined(nodeReport(l.mu.fleet, e.Node))
		case fleet.Inventory:
			l.mu.upkeep.Renewed(e.Node)
			for _, j := range l.mu.jobs {
				if !j.Phase().Ended() && j.spec.Follow {
					j.poke()
				}
			}
		case fleet.Died:
			l.logger.Warn("node is dead", "node", e.Node, "silent_for", l.o.DeadAfter)
			l.mu.upkeep.Died(e.Node, "its node is dead")
		case fleet.Refused:
			l.logger.Warn("node refused", "node", e.Node, "why", e.Why)
		case fleet.Changed:
			if b, ok := l.mu.fleet.Stored(e.Node); ok {
				l.storeLater("a node's record", store.Put(record.NodePrefix+e.Node, b))
			}
			l.mu.upkeep.Renewed(e.Node) // a drive may have more streams than its node reported before the drive was open
		case fleet.Forgotten:
			l.mu.upkeep.Forgotten(e.Node)
			delete(l.mu.nearby, e.Node)
			l.storeLater("a node's end", store.Delete(record.NodePrefix+e.Node))
		}
	}
}

// storeLater writes a record in the background: no caller waits for it.
func (l *leader) storeLater(what string, op store.Op) {
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		ctx, cancel := context.WithTimeout(l.ctx, nodeTime)
		defer cancel()
		if err := l.commit(ctx, op); err != nil && l.ctx.Err() == nil {
			l.logger.Warn("not stored", "what", what, "error", err)
		}
	}()
}

// driveState maps the state that a node reports for its drive to the state that matters to the ledger.
func driveState(said string, draining bool) upkeep.DriveState {
	switch {
	case strings.HasPrefix(said, string(upkeep.Broken)):
		return upkeep.Broken
	case draining || (said != string(upkeep.Ready) && said != ""):
		return upkeep.Draining // draining, or loading an image: leases end, none is granted
	}
	return upkeep.Ready
}
