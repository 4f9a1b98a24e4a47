package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/hook"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/store"
	"github.com/millrace/millrace/control/workerpool"
	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// recordWrites is the number of records that one transaction writes at most.
const recordWrites = 100

// pool starts and stops workers without data through the operator's hook, as package workerpool decides. Its loop is
// one goroutine.
type pool struct {
	l         *leader
	hook      *hook.Hook
	recording sync.Mutex // held while records of workers are written; locked before mu
	mu        struct {   // never locked together with leader.mu
		sync.Mutex
		*workerpool.Pool
	}
}

// startPool starts the pool's loop if there is a hook.
func (l *leader) startPool() error {
	if l.o.WorkerHook == "" {
		return nil
	}
	p := &pool{l: l, hook: hook.New(hook.Options{Command: l.o.WorkerHook, Timeout: l.o.WorkerHookTimeout,
		Logger: l.logger})}
	if err := p.restore(); err != nil {
		return fmt.Errorf("workers that the hook has started: %w", err)
	}
	l.wg.Go(p.run)
	return nil
}

// restore reads the workers that earlier leaders started, drained or knew. Nothing else runs yet.
func (p *pool) restore() error {
	l := p.l
	ctx, cancel := context.WithTimeout(l.ctx, nodeTime)
	defer cancel()
	now := time.Now()
	c := workerpool.Config{Fence: l.term.Fence(), Least: l.o.WorkersLeast, Most: l.o.WorkersMost, Idle: l.o.WorkerIdle,
		Heard: now.Add(l.o.DeadAfter), Adopted: now}
	for _, j := range l.mu.jobs {
		if !j.Phase().Ended() {
			c.Adopted = now.Add(l.o.SessionTTL)
		}
	}
	p.mu.Pool = workerpool.New(c)
	err := l.term.Scan(ctx, record.PoolPrefix, func(key string, value []byte) error {
		var w record.PooledWorker
		err := json.Unmarshal(value, &w)
		if err == nil {
			err = p.mu.Restore(strings.TrimPrefix(key, record.PoolPrefix), w, now, l.o.DeadAfter)
		}
		if err != nil {
			l.logger.Warn("a stored worker cannot be read and is passed over", "key", key, "error", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range l.mu.fleet.Records(now, false) {
		if !l.mu.fleet.Alive(r.Status.Name) {
			p.mu.RestoreNode(pooledNode(l.mu.fleet, r.Status, nil))
		}
	}
	return nil
}

func (p *pool) run() {
	ticker := time.NewTicker(p.l.o.ScaleEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.step(time.Now())
		case <-p.l.ctx.Done():
			return
		}
	}
}

// step reviews the pool once, and starts, drains and stops workers.
func (p *pool) step(now time.Time) {
	v := p.view(now)
	p.mu.Lock()
	d := p.mu.Step(v)
	p.mu.Unlock()
	logger := p.l.logger
	if d.Changed {
		logger.Info("pool of workers", "start", len(d.Start.Names), "stop", len(d.Drain), "why", d.Why, "inputs", d.Inputs)
	}
	for _, name := range d.Late {
		logger.Warn("a worker that was started has not joined", "node", name, "waited", workerpool.JoinPatience)
	}
	if len(d.Settled) > 0 {
		p.l.wg.Go(func() { p.storeOrWarn(d.Settled, "workers that have joined") })
	}
	if len(d.Again.Names) > 0 {
		logger.Info("workers are started again: an earlier leader did not see the hook succeed", "names", d.Again.Names)
	}
	for _, c := range []workerpool.Call{d.Start, d.Again} {
		if len(c.Names) > 0 {
			p.l.wg.Go(func() { p.callStart(c) })
		}
	}
	p.drain(d.Drain, d.Gone, now)
	if len(d.Stop.Names) > 0 {
		p.l.wg.Go(func() { p.callStop(d.Stop) })
	}
}

// view describes the nodes, and what jobs want of the pool.
func (p *pool) view(now time.Time) workerpool.View {
	l := p.l
	l.mu.Lock()
	defer l.mu.Unlock()
	v := workerpool.View{Now: now, Seconds: now.Sub(l.began).Seconds()}
	for id, j := range l.mu.jobs {
		if wanted := wantedBy(j); wanted > 0 {
			v.Wanted += wanted
			v.Jobs = append(v.Jobs, id)
		}
	}
	slices.Sort(v.Jobs)
	busy := map[string]int{} // by node
	for _, d := range l.mu.machine.Ledger.Drives() {
		busy[d.Drive.Node] += d.Busy
	}
	l.mu.fleet.Live(func(s *apiv1.NodeStatus) { v.Nodes = append(v.Nodes, pooledNode(l.mu.fleet, s, busy)) })
	return v
}

// pooledNode describes a node as package workerpool takes it.
func pooledNode(f *fleet.Fleet, s *apiv1.NodeStatus, busy map[string]int) workerpool.Node {
	return workerpool.Node{Name: s.Name, Workers: sharedWorkers(s), Asked: f.Asked(s.Name), Draining: f.Draining(s.Name),
		Busy: busy[s.Name], CPU: s.Load.GetCpu(), Memory: s.Load.GetMemory(), Network: s.Load.GetNetwork(),
		Buffered: s.BufferedBatches}
}

// sharedWorkers counts the workers of any reach of a node that serve every rank.
func sharedWorkers(s *apiv1.NodeStatus) (n int) {
	for _, d := range s.Drives {
		if fleet.ReachesAny(d) && d.Serves == nil {
			n++
		}
	}
	return n
}

// wantedBy counts the workers of any reach that a job wants from the pool.
func wantedBy(j *job) int {
	if j.Phase().Ended() {
		return 0
	}
	return j.steering.PoolWorkers(j.Phase() == record.Running)
}

// drain drains workers of the pool, and undoes it for those that have gone, whose records may be forgotten.
func (p *pool) drain(names, gone []string, now time.Time) {
	if len(names)+len(gone) == 0 {
		return
	}
	l := p.l
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Concat(names, gone) {
		drain := slices.Contains(names, name)
		if !drain && l.mu.fleet.Alive(name) {
			continue // the node has come back meanwhile: it is stopped again
		}
		if err := l.mu.fleet.Drain(name, drain); err != nil {
			continue // the node has been forgotten
		}
		if stored, ok := l.mu.fleet.Stored(name); ok {
			l.storeLater("a node's record", store.Put(record.NodePrefix+name, stored))
		}
		if drain {
			l.logger.Info("a worker of the pool is drained", "node", name)
			l.mu.upkeep.Reported(nodeReport(l.mu.fleet, name))
		}
	}
	l.settleLocked(now)
}

// callStart stores the names of workers and then calls the hook to start them. If a leader ends meanwhile, the next
// leader finds the names.
func (p *pool) callStart(c workerpool.Call) {
	err := p.storeWorkers(c.Names)
	if err == nil {
		err = p.hook.Run(p.l.ctx, hook.Call{Action: hook.Start, Names: c.Names, Jobs: c.Jobs, Control: p.l.s.url})
	}
	if p.l.ctx.Err() != nil {
		return
	}
	if err != nil {
		p.l.logger.Error("start workers", "names", c.Names, "error", err)
	}
	p.mu.Lock()
	p.mu.Started(c.Names, err == nil)
	p.mu.Unlock()
	p.storeOrWarn(c.Names, "workers that were started")
}

// callStop calls the hook to stop drained workers.
func (p *pool) callStop(c workerpool.Call) {
	err := p.l.commit(p.l.ctx) // a leader that was replaced stops nothing
	if err == nil {
		err = p.hook.Run(p.l.ctx, hook.Call{Action: hook.Stop, Names: c.Names, Jobs: c.Jobs, Control: p.l.s.url})
	}
	if err != nil && p.l.ctx.Err() == nil {
		p.l.logger.Error("stop workers", "names", c.Names, "error", err)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.mu.StopFailed(c.Names)
	}
}

// storeOrWarn writes the records of workers. It logs an error as what, which is not stored.
func (p *pool) storeOrWarn(names []string, what string) {
	if err := p.storeWorkers(names); err != nil && p.l.ctx.Err() == nil {
		p.l.logger.Warn("not stored", "what", what, "error", err)
	}
}

// storeWorkers writes the records of workers as they are now: a worker that is not expected any more has none.
func (p *pool) storeWorkers(names []string) error {
	p.recording.Lock()
	defer p.recording.Unlock()
	for part := range slices.Chunk(names, recordWrites) {
		ops, err := p.recordOps(part)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(p.l.ctx, nodeTime)
		err = p.l.commit(ctx, ops...)
		cancel()
		if err != nil {
			return fmt.Errorf("store the names of workers: %w", err)
		}
	}
	return nil
}

// recordOps renders the records of workers.
func (p *pool) recordOps(names []string) ([]store.Op, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ops := make([]store.Op, 0, len(names))
	for _, name := range names {
		w, expected := p.mu.Record(name)
		if !expected {
			ops = append(ops, store.Delete(record.PoolPrefix+name))
			continue
		}
		op, err := jsonOp(record.PoolPrefix+name, w)
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	return ops, nil
}
