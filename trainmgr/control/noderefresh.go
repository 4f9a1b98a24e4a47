package control

import (
	"encoding/hex"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/control/record"
)

// refreshNode prepares a node for the running jobs and lists its drives, in a goroutine of its own. l.mu is held.
func (l *leader) refreshNode(name string) {
	a := l.nodes[name]
	if a == nil || !l.fleet.Alive(name) {
		return
	}
	if a.refreshing {
		a.refreshAgain = true
		return
	}
	a.refreshing = true
	l.wg.Add(1)
	go l.refreshLoop(a)
}

func (l *leader) refreshLoop(a *nodeState) {
	defer l.wg.Done()
	for {
		ok := l.refreshOnce(a)
		l.mu.Lock()
		if !l.fleet.Alive(a.name) || (ok && !a.refreshAgain) {
			a.refreshing, a.refreshAgain = false, false
			l.mu.Unlock()
			return
		}
		a.refreshAgain = false
		l.mu.Unlock()
		if !ok && !sleep(l.ctx, retryNode) {
			return
		}
	}
}

// refreshOnce prepares the node for the jobs that it is not prepared for, then lists its drives. A job that cannot be
// prepared there does not keep the others from the node's drives: its own grants there come back.
func (l *leader) refreshOnce(a *nodeState) bool {
	type item struct {
		j *job
		g *generation
	}
	var items []item
	var over []dataset.Digest
	l.mu.Lock()
	for _, hexed := range l.fleet.Status(a.name).GetJobs() {
		if d, ok := digestOf(hexed); ok && !l.lives.Uses(d) {
			over = append(over, d) // the job ended while the node could not be reached
			delete(a.preparedJobs, d)
		}
	}
	for _, j := range l.jobs {
		if j.Phase().Ended() {
			continue
		}
		for _, g := range j.generations {
			if g.onNodes && !a.preparedJobs[g.Digest] && l.fleet.Holds(a.name, g.data.Manifest) {
				items = append(items, item{j, g})
			}
		}
	}
	drain := l.fleet.Asked(a.name)
	tell := drain != a.drainTold
	l.mu.Unlock()
	for _, d := range over {
		l.finishLeftOver(a.name, d)
	}
	ok := true
	for _, it := range items {
		if err := l.prepare(a.name, it.j, it.g); err != nil {
			l.logger.Warn("prepare a node", "node", a.name, "job", it.j.ID, "error", err)
			ok = ok && connect.CodeOf(err) == connect.CodeFailedPrecondition // it would say so again
		}
	}
	if tell {
		if err := l.calls.drain(l.ctx, a.name, drain); err != nil {
			l.logger.Warn("tell a node to drain", "node", a.name, "drain", drain, "error", err)
			ok = false
		}
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if tell && ok {
		a.drainTold = drain
	}
	if !a.drivesListed {
		l.listDrives(a, now)
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

// finishLeftOver has a node forget a generation that no job needs any more.
func (l *leader) finishLeftOver(node string, digest dataset.Digest) {
	handing := l.handingLock(digest)
	handing.Lock()
	defer handing.Unlock()
	l.mu.Lock()
	used := l.lives.Uses(digest)
	l.mu.Unlock()
	if used {
		return // a job of the digest has begun
	}
	if err := l.calls.finish(l.ctx, node, digest); err != nil {
		l.logger.Warn("finish a job that has ended on a node", "node", node, "digest", digest.String()[:12], "error",
			err)
	}
}

// prepare hands a generation to a node.
func (l *leader) prepare(node string, j *job, g *generation) error {
	manifest, err := g.data.Manifest.MarshalJSON()
	if err != nil {
		return err
	}
	req := &apiv1.PrepareRequest{Job: g.Digest[:], Pipeline: j.spec.Pipeline, Manifest: manifest,
		Plan: record.WirePlan(j.plan), Weight: j.spec.Weight}
	incarnation := l.incarnation(node)
	handing := l.handingLock(g.Digest)
	handing.RLock()
	defer handing.RUnlock()
	if err := l.calls.prepare(l.ctx, node, req); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, st := l.nodes[node], l.fleet.Status(node); a != nil && st != nil && st.Incarnation == incarnation {
		a.preparedJobs[g.Digest] = true
	}
	return nil
}

// urlsOf returns the URLs at which a node is reached.
func (l *leader) urlsOf(node string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fleet.Status(node).GetUrls()
}

func (l *leader) incarnation(node string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fleet.Status(node).GetIncarnation()
}
