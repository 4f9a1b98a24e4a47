package control

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/control/record"
)

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
		if d, ok := digestOf(hexed); ok && !l.lives.Uses(d) {
			over = append(over, d) // it ended while the node could not be told
			delete(a.prepared, d)
		}
	}
	for _, j := range l.jobs {
		if j.Phase().Ended() {
			continue
		}
		for _, g := range j.generations {
			if g.onNodes && !a.prepared[g.Digest] && l.fleet.Holds(a.name, g.data.Manifest) {
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
			l.logger.Warn("prepare a node", "node", a.name, "job", it.j.ID, "error", err)
			ok = ok && connect.CodeOf(err) == connect.CodeFailedPrecondition // it would say so again
		}
	}
	if tell {
		err := l.call(l.ctx, a.name, nodeTime, func(ctx context.Context, c apiv1connect.NodeClient) error {
			_, err := c.Drain(ctx, &apiv1.DrainRequest{Drain: drain})
			return err
		})
		if err != nil {
			l.logger.Warn("tell a node to drain", "node", a.name, "drain", drain, "error", err)
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
	used := l.lives.Uses(digest)
	l.mu.Unlock()
	if used {
		return // a job of the digest has begun
	}
	if err := l.finishOn(l.ctx, node, digest); err != nil {
		l.logger.Warn("finish a job that has ended on a node", "node", node, "digest", digest.String()[:12], "error", err)
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
	own := ctx
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
			break
		}
	}
	if own.Err() != nil {
		return err
	}
	return unreached(err)
}

// unreached gives what came of a connection, and not of the node, the code of what may go well later. connect has others for it: canceled for a
// connection that was reset, deadline_exceeded for a node that hangs. A node that ends while it works says canceled itself; nobody here does.
func unreached(err error) error {
	switch code := connect.CodeOf(err); {
	case err == nil:
		return nil
	case code == connect.CodeCanceled,
		!connect.IsWireError(err) && (code == connect.CodeDeadlineExceeded || code == connect.CodeUnknown || code == connect.CodeInternal):
		return connect.NewError(connect.CodeUnavailable, err)
	}
	return err
}
