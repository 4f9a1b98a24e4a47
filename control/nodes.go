package control

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/guard"
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/store"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
)

// nodeState is the leader's view of a node, beside the fleet's. leader.mu guards it.
type nodeState struct {
	name         string
	preparedJobs map[dataset.Digest]bool  // by this incarnation of the node
	unprepared   map[dataset.Digest]error // why the node could not be prepared, when it was asked last
	ownFiles     map[string]bool          // by fleet.Word: partitions in files of the machine of the node's workers
	drives       map[string]string        // by name: the state that the ledger knows
	drivesListed bool                     // the ledger knows the node's drives
	drainTold    bool                     // the node was asked to drain
	refreshing   bool                     // the node's refreshLoop runs
	refreshAgain bool                     // the refreshLoop has to run once more
	returned     returns                  // leases on the node's drives whose tickets the node has to refuse
	thisMachine  bool                     // The last heartbeat came from this machine.
}

// nodeKeeper keeps nodes prepared for the running jobs, and keeps the ledger's view of the nodes' drives up to date.
// It uses the machines, the lock and the calls of the leader.
type nodeKeeper struct{ *leader }

// Heartbeat implements the service.
func (s *Server) Heartbeat(ctx context.Context, req *apiv1.HeartbeatRequest) (*apiv1.HeartbeatResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	now, wall := time.Now(), seconds(time.Now())
	l.mu.Lock()
	if err := l.checkRegistration(guard.Peer(ctx), req.GetStatus()); err != nil {
		l.mu.Unlock()
		return nil, err
	}
	answer, events, err := l.fleet.Beat(now, wall, req.Status)
	nodeKeeper{l}.nodeEvents(events, now)
	if err == nil {
		nodeKeeper{l}.driveStates(req.Status, now)
		l.settle(now)
	}
	var back []uint64
	var seen uint64
	if a := l.nodes[req.GetStatus().GetName()]; err == nil && a != nil {
		a.thisMachine = calledFromThisMachine(ctx)
		if req.ReturnedFence == l.term.Fence() {
			seen = req.ReturnedSeen
		}
		back, seen = a.returned.after(seen, now)
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
	records := l.fleet.Records(now, true)
	l.addTroubles(records, now)
	return &apiv1.ListNodesResponse{Nodes: records}, nil
}

// DrainNode implements the service.
func (s *Server) DrainNode(ctx context.Context, req *apiv1.DrainNodeRequest) (*apiv1.DrainNodeResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	was := l.fleet.Draining(req.Node)
	err = l.fleet.Drain(req.Node, req.Drain)
	stored, _ := l.fleet.Stored(req.Node)
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
	if st := l.fleet.Status(req.Node); st != nil && l.fleet.Alive(req.Node) {
		nodeKeeper{l}.driveStates(st, now)
	}
	l.settle(now)
	nodeKeeper{l}.refreshNode(req.Node)
	resp := &apiv1.DrainNodeResponse{}
	for _, d := range l.machine.Ledger.Drives() {
		if d.Drive.Node == req.Node {
			resp.Leases += int32(d.Leases)
		}
	}
	return resp, nil
}

// nodeEvents carries out the events of the fleet. l.mu is held.
func (k nodeKeeper) nodeEvents(events []fleet.Event, now time.Time) {
	for _, e := range events {
		a := k.nodes[e.Node]
		if a == nil {
			a = &nodeState{name: e.Node, preparedJobs: map[dataset.Digest]bool{},
				unprepared: map[dataset.Digest]error{}, ownFiles: map[string]bool{}, drives: map[string]string{}}
			k.nodes[e.Node] = a
		}
		switch e.Kind {
		case fleet.Joined, fleet.Restarted:
			what := "joined"
			if e.Kind == fleet.Restarted {
				what = "restarted"
			}
			st := k.fleet.Status(e.Node)
			k.logger.Info("node "+what, "node", e.Node, "incarnation", st.Incarnation, "version", st.Version, "drives",
				len(st.Drives))
			if e.Kind == fleet.Restarted {
				k.loseNode(a, "the node was restarted", now)
			}
			clear(a.preparedJobs)
			clear(a.ownFiles)
			a.drainTold = k.fleet.Asked(e.Node) && st.Draining
			// The leader may be newer than the agent. Workers are prepared again, since their answer names their own files.
			for _, hexed := range st.Jobs {
				if d, ok := digestOf(hexed); ok && !k.fleet.Reaches(e.Node) {
					a.preparedJobs[d] = true
				}
			}
		case fleet.Inventory:
			a.drivesListed = false
			k.refreshNode(e.Node)
			for _, j := range k.jobs {
				if !j.Phase().Ended() && j.spec.Follow {
					j.poke()
				}
			}
		case fleet.Died:
			k.logger.Warn("node is dead", "node", e.Node, "silent_for", k.o.DeadAfter)
			k.loseNode(a, "its node is dead", now)
		case fleet.Refused:
			k.logger.Warn("node refused", "node", e.Node, "why", e.Why)
		case fleet.Changed:
			if b, ok := k.fleet.Stored(e.Node); ok {
				k.storeLater("a node's record", store.Put(record.NodePrefix+e.Node, b))
			}
			a.drivesListed = false // a drive may have more streams than its node reported before the drive was open
			k.refreshNode(e.Node)
		case fleet.Forgotten:
			for d := range a.drives {
				// a drive that the ledger does not know needs no removal
				_ = k.machine.Ledger.RemoveDrive(ledger.DriveID{Node: e.Node, Name: d}, now)
			}
			delete(k.nodes, e.Node)
			k.storeLater("a node's end", store.Delete(record.NodePrefix+e.Node))
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

// loseNode takes back all leases of a node. l.mu is held.
func (k nodeKeeper) loseNode(a *nodeState, why string, now time.Time) {
	for d := range a.drives {
		if err := k.machine.Ledger.LoseDrive(ledger.DriveID{Node: a.name, Name: d}, why, now); err != nil && !errors.Is(err,
			ledger.ErrUnknown) {
			k.logger.Error("lose a drive", "node", a.name, "drive", d, "error", err)
		}
	}
	clear(a.drives)
	a.drivesListed = false
}

// The states of a drive that the leader distinguishes for the ledger.
const (
	driveReady    = "ready"
	driveDraining = "draining"
	driveFailed   = "failed"
)

// driveState maps the state that a node reports for its drive to one of these states.
func driveState(said string, draining bool) string {
	switch {
	case strings.HasPrefix(said, driveFailed):
		return driveFailed
	case draining || (said != driveReady && said != ""):
		return driveDraining // draining, or loading an image: leases end, none is granted
	}
	return driveReady
}

// driveStates informs the ledger which drives can work according to their node's heartbeat, once the node is
// prepared. l.mu is held.
func (k nodeKeeper) driveStates(s *apiv1.NodeStatus, now time.Time) {
	a := k.nodes[s.Name]
	if a == nil || !a.drivesListed {
		return
	}
	draining := k.fleet.Draining(s.Name)
	for _, d := range s.Drives {
		was, ok := a.drives[d.Name]
		is := driveState(d.State, draining)
		if !ok || was == is {
			continue
		}
		id := ledger.DriveID{Node: s.Name, Name: d.Name}
		var err error
		switch {
		case is == driveFailed:
			err = k.machine.Ledger.LoseDrive(id, d.State, now)
		case was == driveFailed:
			a.drivesListed = false // listing the drives again revives this drive
			k.refreshNode(s.Name)
			continue
		default:
			err = k.machine.Ledger.DrainDrive(id, is == driveDraining, now)
		}
		if err != nil {
			k.logger.Error("a drive's state", "node", s.Name, "drive", d.Name, "error", err)
			continue
		}
		k.logger.Info("drive", "node", s.Name, "drive", d.Name, "from", was, "to", is, "why", d.State)
		a.drives[d.Name] = is
	}
	if k.fleet.Asked(s.Name) != a.drainTold {
		k.refreshNode(s.Name)
	}
}

// listDrives puts all drives of a node into the ledger. l.mu is held.
func (k nodeKeeper) listDrives(a *nodeState, now time.Time) {
	s := k.fleet.Status(a.name)
	if s == nil || !k.fleet.Alive(a.name) {
		return
	}
	words := k.fleet.Words(a.name)
	draining := k.fleet.Draining(a.name)
	have := map[string]bool{}
	for _, d := range s.Drives {
		id := ledger.DriveID{Node: a.name, Name: d.Name}
		have[d.Name] = true
		state := driveState(d.State, draining)
		held := words[d.Name]
		if fleet.ReachesAny(d) {
			held = slices.Collect(maps.Keys(a.ownFiles))
		}
		v := ledgerDrive(a.name, d, held)
		v.Draining = state != driveReady
		err := k.machine.Ledger.PutDrive(v, now)
		if err == nil && state == driveFailed {
			err = k.machine.Ledger.LoseDrive(id, d.State, now)
		}
		if err != nil {
			k.logger.Error("list a drive", "node", a.name, "drive", d.Name, "error", err)
			continue
		}
		a.drives[d.Name] = state
	}
	for d := range a.drives {
		if !have[d] && d != storeDrive(a.name).Name {
			// a drive that the ledger does not know needs no removal
			_ = k.machine.Ledger.RemoveDrive(ledger.DriveID{Node: a.name, Name: d}, now)
			delete(a.drives, d)
		}
	}
	k.listStore(a, now)
	a.drivesListed = true
	k.settle(now)
}
