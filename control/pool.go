package control

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/hook"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/store"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/autoscale"
)

// poolPrefix begins the names of workers that the control plane starts. The control plane stops no other workers.
const poolPrefix = "pool-"

// pool starts and stops workers without data through the operator's hook. Its loop is one goroutine; leader.mu guards
// the fields below state.
type pool struct {
	*leader
	hook      *hook.Hook
	recording sync.Mutex // held while records of workers are written; locked before leader.mu
	heard     time.Time  // by then, the nodes of earlier terms have called this leader, or are dead
	adopted   time.Time  // by then, the ranks of earlier terms have presented their leases

	state    autoscale.PoolState
	held     bool                      // the last decision kept a number of workers that is not the wanted one
	named    int                       // workers that this leader named
	starting map[string]expectedWorker // by name
	stopping map[string]bool           // by name: the hook was asked to stop it
}

// startPool starts the pool's loop if there is a hook.
func (l *leader) startPool() error {
	if l.o.WorkerHook == "" {
		return nil
	}
	p := &pool{leader: l, starting: map[string]expectedWorker{}, stopping: map[string]bool{},
		hook: hook.New(hook.Options{Command: l.o.WorkerHook, Timeout: l.o.WorkerHookTimeout, Logger: l.logger})}
	if err := p.restore(); err != nil {
		return fmt.Errorf("workers that the hook has started: %w", err)
	}
	l.wg.Go(p.run)
	return nil
}

func (p *pool) run() {
	ticker := time.NewTicker(p.o.ScaleEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.step(time.Now())
		case <-p.ctx.Done():
			return
		}
	}
}

// step reviews the pool once, and starts, drains and stops workers as autoscale.DecidePool decides.
func (p *pool) step(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	live := p.review(now)
	in := p.inputs(live, now)
	d := autoscale.DecidePool(p.state, in)
	p.state = d.After
	if d.Start > 0 || d.Stop > 0 || d.Held && !p.held {
		p.logger.Info("pool of workers", "start", d.Start, "stop", d.Stop, "why", d.Why, "inputs", in)
	}
	p.held = d.Held
	p.start(d.Start, now)
	p.startAgain(now)
	p.drainSurplus(live, d.Stop, now)
	if now.After(p.adopted) { // before that, leases that ranks hold may be unknown
		p.stopDrained()
	}
}

// review forgets workers that have joined or left, and returns the nodes whose workers take work of every rank. p.mu is
// held.
func (p *pool) review(now time.Time) (live []*apiv1.NodeStatus) {
	p.reviewExpected(now)
	for name := range p.stopping {
		if p.fleet.Alive(name) || now.Before(p.heard) {
			continue
		}
		delete(p.stopping, name)
		if err := p.fleet.Drain(name, false); err == nil { // the worker is gone, and its record may be forgotten
			p.storeNode(name)
		}
	}
	p.fleet.Live(func(s *apiv1.NodeStatus) {
		if strings.HasPrefix(s.Name, poolPrefix) && p.fleet.Asked(s.Name) {
			if _, known := p.stopping[s.Name]; !known {
				p.stopping[s.Name] = false // drained by an earlier leader, or by an operator
			}
		}
		if !p.fleet.Draining(s.Name) && sharedWorkers(s) > 0 {
			live = append(live, s)
		}
	})
	return live
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

// storeNode stores a node's record in the background. p.mu is held.
func (p *pool) storeNode(name string) {
	if stored, ok := p.fleet.Stored(name); ok {
		p.storeLater("a node's record", store.Put(record.NodePrefix+name, stored))
	}
}

// inputs collects the inputs of autoscale.DecidePool. p.mu is held.
func (p *pool) inputs(live []*apiv1.NodeStatus, now time.Time) autoscale.PoolInputs {
	in := autoscale.PoolInputs{Seconds: now.Sub(p.began).Seconds(), Least: p.o.WorkersLeast, Most: p.o.WorkersMost,
		Idle: p.o.WorkerIdle.Seconds()}
	for _, w := range p.starting {
		in.Starting += w.workers
	}
	for _, j := range p.jobs {
		in.Wanted += wantedBy(j)
	}
	for _, s := range live {
		in.Live += sharedWorkers(s)
		if strings.HasPrefix(s.Name, poolPrefix) {
			in.Pooled += sharedWorkers(s)
		}
		share := 1 / float64(len(live))
		in.CPU += share * bounded(s.Load.GetCpu())
		in.Memory += share * bounded(s.Load.GetMemory())
		in.Network += share * bounded(s.Load.GetNetwork())
		in.Buffered += share * float64(max(s.BufferedBatches, 0))
	}
	return in
}

// bounded returns a share from 0 to 1. A value that is not a share counts as unknown, which is 0.
func bounded(share float64) float64 {
	if !(share > 0) {
		return 0
	}
	return min(share, 1)
}

// wantedBy counts the workers of any reach that a job wants from the pool.
func wantedBy(j *job) int {
	if j.Phase().Ended() {
		return 0
	}
	return j.steering.PoolWorkers(j.Phase() == record.Running)
}

// jobsThatWant names the jobs that want workers. p.mu is held.
func (p *pool) jobsThatWant() (ids []string) {
	for id, j := range p.jobs {
		if wantedBy(j) > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// start calls the hook to start workers. p.mu is held.
func (p *pool) start(count int, now time.Time) {
	if count == 0 {
		return
	}
	names, jobs := make([]string, count), p.jobsThatWant()
	for i := range names {
		p.named++
		names[i] = fmt.Sprintf("%s%x-%d", poolPrefix, p.term.Fence(), p.named)
		p.starting[names[i]] = expectedWorker{until: now.Add(joinPatience), workers: 1, kept: true, jobs: jobs}
	}
	p.wg.Go(func() { p.callStart(names, jobs) })
}

// drainSurplus drains workers of the pool. It begins with the workers that have the fewest leases. p.mu is held.
func (p *pool) drainSurplus(live []*apiv1.NodeStatus, count int, now time.Time) {
	if count == 0 {
		return
	}
	leases := p.leasesByNode()
	live = slices.DeleteFunc(slices.Clone(live), func(s *apiv1.NodeStatus) bool {
		return !strings.HasPrefix(s.Name, poolPrefix)
	})
	slices.SortFunc(live, func(a, b *apiv1.NodeStatus) int {
		return cmp.Or(cmp.Compare(leases[a.Name], leases[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	for _, s := range live[:min(count, len(live))] {
		if err := p.fleet.Drain(s.Name, true); err != nil {
			p.logger.Error("drain a worker", "node", s.Name, "error", err)
			continue
		}
		p.logger.Info("a worker of the pool is drained", "node", s.Name)
		p.stopping[s.Name] = false
		p.storeNode(s.Name)
		p.upkeep.Reported(nodeReport(p.fleet, s.Name))
	}
	p.settle(now)
}

func (p *pool) leasesByNode() map[string]int {
	leases := map[string]int{}
	for _, d := range p.machine.Ledger.Drives() {
		leases[d.Drive.Node] += d.Busy
	}
	return leases
}

// stopDrained calls the hook to stop the drained workers whose leases have ended. p.mu is held.
func (p *pool) stopDrained() {
	var names []string
	leases := p.leasesByNode()
	for name, told := range p.stopping {
		if !told && leases[name] == 0 {
			names = append(names, name)
			p.stopping[name] = true
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	call := hook.Call{Action: hook.Stop, Names: names, Jobs: p.jobsThatWant(), Control: p.s.url}
	p.wg.Go(func() {
		err := p.commit(p.ctx) // a leader that was replaced stops nothing
		if err == nil {
			err = p.hook.Run(p.ctx, call)
		}
		if err != nil && p.ctx.Err() == nil {
			p.logger.Error("stop workers", "names", names, "error", err)
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, name := range names {
				if _, known := p.stopping[name]; known {
					p.stopping[name] = false // the hook is called again
				}
			}
		}
	})
}
