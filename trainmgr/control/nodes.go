package control

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/control/fleet"
	"github.com/millrace/millrace/trainmgr/control/guard"
	"github.com/millrace/millrace/trainmgr/control/ledger"
	"github.com/millrace/millrace/trainmgr/control/record"
	"github.com/millrace/millrace/trainmgr/control/store"
)

// agent is what the leader knows of a node beside the fleet. Guarded by leader.mu.
type agent struct {
	name     string
	prepared map[dataset.Digest]bool // jobs, by this incarnation
	drives   map[string]string       // to the state as the ledger was told
	listed   bool                    // its drives are with the ledger
	told     bool                    // to drain, by a leader
	busy     bool                    // its goroutine runs
	again    bool                    // and has to look once more
}

// Times for calls to nodes.
const (
	prepareTime = time.Minute
	measureTime = 2 * time.Minute
	nodeTime    = 5 * time.Second
	retryNode   = 2 * time.Second
)

// Heartbeat implements the service.
func (s *Server) Heartbeat(ctx context.Context, req *apiv1.HeartbeatRequest) (*apiv1.HeartbeatResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	if id := guard.Peer(ctx); id.Role == identity.Node && req.GetStatus().GetName() != id.Name {
		return nil, connect.NewError(connect.CodePermissionDenied, fmt.Errorf("node %s beats for node %s: a node's name is its certificate's; change name in its configuration, or issue it another (millrace pki issue --role node --name NAME)", id.Name, shorten(req.GetStatus().GetName())))
	}
	now, wall := time.Now(), seconds(time.Now())
	l.mu.Lock()
	answer, events, err := l.fleet.Beat(now, wall, req.Status)
	l.nodeEvents(events, now)
	if err == nil {
		l.driveStates(req.Status, now)
		l.ready(now)
	}
	l.mu.Unlock()
	if err != nil {
		return nil, l.wire(err)
	}
	return &apiv1.HeartbeatResponse{
		Protocol: apiv1.Protocol, Leader: s.url, Fence: l.term.Fence(), WantInventory: answer.WantInventory,
		IntervalSeconds: l.o.Beat.Seconds(), DeadAfterSeconds: l.o.DeadAfter.Seconds(), ClockSeconds: wall,
	}, nil
}

// seconds is Unix time.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// ListNodes implements the service.
func (s *Server) ListNodes(ctx context.Context, _ *apiv1.ListNodesRequest) (*apiv1.ListNodesResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return &apiv1.ListNodesResponse{Nodes: l.fleet.Records(time.Now(), true)}, nil
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
		return nil, l.wire(err)
	}
	// An operator's word must outlive this leader.
	if err := l.commit(ctx, store.Put(record.NodePrefix+req.Node, stored)); err != nil {
		return nil, l.wire(err)
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if was != req.Drain {
		l.logger.Info("node", "node", req.Node, "drain", req.Drain)
	}
	if st := l.fleet.Status(req.Node); st != nil && l.fleet.Alive(req.Node) {
		l.driveStates(st, now)
	}
	l.ready(now)
	l.tend(req.Node)
	resp := &apiv1.DrainNodeResponse{}
	for _, d := range l.ledger.Drives() {
		if d.Drive.Node == req.Node {
			resp.Leases += int32(d.Leases)
		}
	}
	return resp, nil
}

// nodeEvents carries out what happened to nodes. l.mu is held.
func (l *leader) nodeEvents(events []fleet.Event, now time.Time) {
	for _, e := range events {
		a := l.nodes[e.Node]
		if a == nil {
			a = &agent{name: e.Node, prepared: map[dataset.Digest]bool{}, drives: map[string]string{}}
			l.nodes[e.Node] = a
		}
		switch e.Kind {
		case fleet.Joined, fleet.Restarted:
			what := "joined"
			if e.Kind == fleet.Restarted {
				what = "restarted"
			}
			st := l.fleet.Status(e.Node)
			l.logger.Info("node "+what, "node", e.Node, "incarnation", st.Incarnation, "version", st.Version, "drives", len(st.Drives))
			if e.Kind == fleet.Restarted {
				l.loseNode(a, "the node was restarted", now)
			}
			clear(a.prepared)
			a.told = l.fleet.Asked(e.Node) && st.Draining
			for _, hexed := range st.Jobs { // this leader is new, the agent is not
				if d, ok := digestOf(hexed); ok {
					a.prepared[d] = true
				}
			}
		case fleet.Inventory:
			a.listed = false
			l.tend(e.Node)
			for _, j := range l.jobs {
				if !j.Phase.Ended() && j.spec.Follow {
					j.poke()
				}
			}
		case fleet.Died:
			l.logger.Warn("node is dead", "node", e.Node, "silent_for", l.o.DeadAfter)
			l.loseNode(a, "its node is dead", now)
		case fleet.Refused:
			l.logger.Warn("node refused", "node", e.Node, "why", e.Why)
		case fleet.Changed:
			if b, ok := l.fleet.Stored(e.Node); ok {
				l.store("a node's record", store.Put(record.NodePrefix+e.Node, b))
			}
			a.listed = false // a drive may have more streams than it said before it was open
			l.tend(e.Node)
		case fleet.Forgotten:
			for d := range a.drives {
				_ = l.ledger.RemoveDrive(ledger.DriveID{Node: e.Node, Name: d}, now) // unknown is as good
			}
			delete(l.nodes, e.Node)
			l.store("a node's end", store.Delete(record.NodePrefix+e.Node))
		}
	}
}

// store writes a record that nobody waits for.
func (l *leader) store(what string, op store.Op) {
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		ctx, cancel := context.WithTimeout(l.ctx, nodeTime)
		defer cancel()
		if err := l.commit(ctx, op); err != nil && l.ctx.Err() == nil {
			l.logger.Warn("not stored", "what", what, "err", err)
		}
	}()
}

// loseNode takes all leases of a node back. l.mu is held.
func (l *leader) loseNode(a *agent, why string, now time.Time) {
	for d := range a.drives {
		if err := l.ledger.LoseDrive(ledger.DriveID{Node: a.name, Name: d}, why, now); err != nil && !errors.Is(err, ledger.ErrUnknown) {
			l.logger.Error("lose a drive", "node", a.name, "drive", d, "err", err)
		}
	}
	clear(a.drives)
	a.listed = false
}

// States of a drive as the ledger is told.
const (
	driveReady    = "ready"
	driveDraining = "draining"
	driveFailed   = "failed"
)

// driveState sorts what a node says of a drive.
func driveState(said string, draining bool) string {
	switch {
	case strings.HasPrefix(said, driveFailed):
		return driveFailed
	case draining || (said != driveReady && said != ""):
		return driveDraining // draining, or loading an image: what runs ends, nothing begins
	}
	return driveReady
}

// driveStates tells the ledger which drives a node's beat says can work, once the node is prepared. l.mu is held.
func (l *leader) driveStates(s *apiv1.NodeStatus, now time.Time) {
	a := l.nodes[s.Name]
	if a == nil || !a.listed {
		return
	}
	draining := l.fleet.Draining(s.Name)
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
			err = l.ledger.LoseDrive(id, d.State, now)
		case was == driveFailed:
			a.listed = false // listed again, it lives again
			l.tend(s.Name)
			continue
		default:
			err = l.ledger.DrainDrive(id, is == driveDraining, now)
		}
		if err != nil {
			l.logger.Error("a drive's state", "node", s.Name, "drive", d.Name, "err", err)
			continue
		}
		l.logger.Info("drive", "node", s.Name, "drive", d.Name, "from", was, "to", is, "why", d.State)
		a.drives[d.Name] = is
	}
	if l.fleet.Asked(s.Name) != a.told {
		l.tend(s.Name)
	}
}

// list tells the ledger of all drives of a node. l.mu is held.
func (l *leader) list(a *agent, now time.Time) {
	s := l.fleet.Status(a.name)
	if s == nil || !l.fleet.Alive(a.name) {
		return
	}
	words := l.fleet.Words(a.name)
	draining := l.fleet.Draining(a.name)
	have := map[string]bool{}
	for _, d := range s.Drives {
		id := ledger.DriveID{Node: a.name, Name: d.Name}
		have[d.Name] = true
		state := driveState(d.State, draining)
		err := l.ledger.PutDrive(ledger.Drive{ID: id, Slots: int(max(d.Streams, 1)), Partitions: words[d.Name], Draining: state != driveReady}, now)
		if err == nil && state == driveFailed {
			err = l.ledger.LoseDrive(id, d.State, now)
		}
		if err != nil {
			l.logger.Error("list a drive", "node", a.name, "drive", d.Name, "err", err)
			continue
		}
		a.drives[d.Name] = state
	}
	for d := range a.drives {
		if !have[d] {
			_ = l.ledger.RemoveDrive(ledger.DriveID{Node: a.name, Name: d}, now) // unknown is as good
			delete(a.drives, d)
		}
	}
	a.listed = true
	l.ready(now)
}

// tend has a node prepared for the jobs that run and its drives listed, in a goroutine of its own. l.mu is held.
func (l *leader) tend(name string) {
	a := l.nodes[name]
	if a == nil || !l.fleet.Alive(name) {
		return
	}
	if a.busy {
		a.again = true
		return
	}
	a.busy = true
	l.wg.Add(1)
	go l.tending(a)
}

func (l *leader) tending(a *agent) {
	defer l.wg.Done()
	for {
		ok := l.tendOnce(a)
		l.mu.Lock()
		if !l.fleet.Alive(a.name) || (ok && !a.again) {
			a.busy, a.again = false, false
			l.mu.Unlock()
			return
		}
		a.again = false
		l.mu.Unlock()
		if !ok && !sleep(l.ctx, retryNode) {
			return
		}
	}
}

// tendOnce prepares what is not prepared, then lists the drives. A job that cannot be prepared there does not keep the
// others from the node's drives: what it is granted there comes back.
func (l *leader) tendOnce(a *agent) bool {
	type item struct {
		j *job
		g *generation
	}
	var items []item
	var over []dataset.Digest
	l.mu.Lock()
	for _, hexed := range l.fleet.Status(a.name).GetJobs() {
		if d, ok := digestOf(hexed); ok && !l.inUse(d) {
			over = append(over, d) // it ended while the node could not be told
			delete(a.prepared, d)
		}
	}
	for _, j := range l.jobs {
		if j.Phase.Ended() {
			continue
		}
		for _, g := range j.generations {
			if g.prepared && !a.prepared[g.Digest] && l.fleet.Holds(a.name, g.data.Manifest) {
				items = append(items, item{j, g})
			}
		}
	}
	drain := l.fleet.Asked(a.name)
	tell := drain != a.told
	l.mu.Unlock()
	for _, d := range over {
		l.finishLeftOver(a.name, d)
	}
	ok := true
	for _, it := range items {
		if err := l.prepare(a.name, it.j, it.g); err != nil {
			l.logger.Warn("prepare a node", "node", a.name, "job", it.j.ID, "err", err)
			ok = ok && connect.CodeOf(err) == connect.CodeFailedPrecondition // it would say so again
		}
	}
	if tell {
		err := l.call(l.ctx, a.name, nodeTime, func(ctx context.Context, c apiv1connect.NodeClient) error {
			_, err := c.Drain(ctx, &apiv1.DrainRequest{Drain: drain})
			return err
		})
		if err != nil {
			l.logger.Warn("tell a node to drain", "node", a.name, "drain", drain, "err", err)
			ok = false
		}
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if tell && ok {
		a.told = drain
	}
	if !a.listed {
		l.list(a, now)
	}
	return ok
}

// digestOf reads a job's digest as nodes list it.
func digestOf(hexed string) (d dataset.Digest, ok bool) {
	b, err := hex.DecodeString(hexed)
	if err != nil || len(b) != len(d) {
		return d, false
	}
	return dataset.Digest(b), true
}

// finishOn has a node forget a job.
func (l *leader) finishOn(ctx context.Context, node string, digest dataset.Digest) error {
	return l.call(ctx, node, nodeTime, func(ctx context.Context, c apiv1connect.NodeClient) error {
		_, err := c.Finish(ctx, &apiv1.FinishRequest{Job: digest[:]})
		return err
	})
}

// finishLeftOver has a node forget what no job needs any more.
func (l *leader) finishLeftOver(node string, digest dataset.Digest) {
	handing := l.handed(digest)
	handing.Lock()
	defer handing.Unlock()
	l.mu.Lock()
	used := l.inUse(digest)
	l.mu.Unlock()
	if used {
		return // a job of the digest has begun
	}
	if err := l.finishOn(l.ctx, node, digest); err != nil {
		l.logger.Warn("finish a job that has ended on a node", "node", node, "digest", digest.String()[:12], "err", err)
	}
}

// prepare hands a generation to a node.
func (l *leader) prepare(node string, j *job, g *generation) error {
	manifest, err := g.data.Manifest.MarshalJSON()
	if err != nil {
		return err
	}
	req := &apiv1.PrepareRequest{Job: g.Digest[:], Pipeline: j.spec.Pipeline, Manifest: manifest, Plan: record.WirePlan(j.plan), Weight: j.spec.Weight}
	incarnation := l.incarnation(node)
	handing := l.handed(g.Digest)
	handing.RLock()
	defer handing.RUnlock()
	err = l.call(l.ctx, node, prepareTime, func(ctx context.Context, c apiv1connect.NodeClient) error {
		_, err := c.Prepare(ctx, req)
		return err
	})
	if err != nil {
		return fmt.Errorf("node %s: prepare: %w", node, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, st := l.nodes[node], l.fleet.Status(node); a != nil && st != nil && st.Incarnation == incarnation {
		a.prepared[g.Digest] = true
	}
	return nil
}

func (l *leader) incarnation(node string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fleet.Status(node).GetIncarnation()
}

// fencing tells nodes with every call which leader calls: they refuse one that was replaced.
func (l *leader) fencing() connect.UnaryInterceptorFunc {
	fence := strconv.FormatUint(l.term.Fence(), 10)
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			r.Header().Set(apiv1.FenceHeader, fence)
			return next(ctx, r)
		}
	}
}

// call calls a node at its URLs in turn until one is reached.
func (l *leader) call(ctx context.Context, node string, most time.Duration, fn func(context.Context, apiv1connect.NodeClient) error) error {
	l.mu.Lock()
	urls := l.fleet.Status(node).GetUrls()
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := fmt.Errorf("node %s: it has no URL", node)
	for _, u := range urls {
		base, berr := identity.BaseURL(u)
		if berr != nil {
			err = berr
			continue
		}
		err = fn(ctx, apiv1connect.NewNodeClient(l.s.nodes, base, connect.WithReadMaxBytes(maxBeat), connect.WithInterceptors(l.fencing())))
		if err == nil || connect.IsWireError(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}
