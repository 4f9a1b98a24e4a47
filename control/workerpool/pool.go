package workerpool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/trainmgr/autoscale"
)

// prefix begins the names of workers that a pool starts. A pool stops no other workers.
const prefix = "pool-"

// JoinPatience is how long a worker that was started may take to join before another one is started in its place.
const JoinPatience = 2 * time.Minute

// Config holds the values of a term on which a pool depends.
type Config struct {
	Fence   uint64 // Fence is that of the term. It is part of the names.
	Least   int    // workers that are kept even if jobs want fewer
	Most    int    // workers that may live
	Idle    time.Duration
	Heard   time.Time // by then, the nodes of earlier terms have called this leader, or are dead
	Adopted time.Time // by then, the ranks of earlier terms have presented their leases
}

// Node is a node whose heartbeats arrive.
type Node struct {
	Name     string
	Workers  int  // workers of any reach that serve every rank
	Asked    bool // The pool, an earlier leader or an operator drains the node.
	Draining bool // The node takes no further work.
	Busy     int  // streams that work for leases
	// CPU, Memory and Network are the shares of its machine that the node uses; 0: not known.
	CPU, Memory, Network float64
	Buffered             int64 // mini-batches that wait in the node
}

// View is what the owner of a Pool sees at one moment.
type View struct {
	Now     time.Time
	Seconds float64  // since the owner's term began
	Nodes   []Node   // the nodes whose heartbeats arrive, in order of their names
	Wanted  int      // workers that jobs want, all jobs together
	Jobs    []string // ids of these jobs, in order
}

// Call is a call of the hook.
type Call struct {
	Names []string // Names has the workers; if it is empty, there is no call.
	Jobs  []string // ids of the jobs that want workers
}

// Decision is what the owner of a pool does next.
type Decision struct {
	Settled []string // Records of workers that joined or were given up are to be removed.
	Late    []string // workers of Settled that were given up
	Gone    []string // nodes that were stopped and have gone: they are no longer drained
	Start   Call     // The names are stored before the hook is called; the end of the call is Started.
	Again   Call     // a call that an earlier leader did not see succeed, with the same names
	Drain   []string // nodes
	Stop    Call     // StopFailed records that the call failed.

	Why     string // why workers are started or drained, or their number is kept
	Changed bool   // The owner may log Why and Inputs: it differs from the last decision.
	Inputs  autoscale.PoolInputs
}

// expected is a worker that the leader has not heard from yet: the hook was called to start the worker, or an
// earlier leader knew it. An expected worker counts as one that is starting.
type expected struct {
	until   time.Time // when the leader gives the worker up
	workers int       // workers of any reach of its node
	jobs    []string  // ids of the jobs that wanted the worker
	kept    bool      // the worker has a record in the store, until it joins or is given up
	started bool      // the hook has succeeded
	again   bool      // an earlier leader called the hook and did not see it succeed
}

// Pool is the workers that a control plane starts and stops.
type Pool struct {
	Config
	state    autoscale.PoolState
	held     bool                // the last decision kept a number of workers that is not the wanted one
	named    int                 // workers that this leader named
	starting map[string]expected // by name
	stopping map[string]bool     // by name: the hook was asked to stop it
}

// New returns a pool without workers.
func New(c Config) *Pool {
	return &Pool{Config: c, starting: map[string]expected{}, stopping: map[string]bool{}}
}

// Restore takes the record of a worker that an earlier leader started. deadAfter is the silence after which a node
// counts as dead. The error is that of a name that no control plane gives.
func (p *Pool) Restore(name string, r record.PooledWorker, now time.Time, deadAfter time.Duration) error {
	if !strings.HasPrefix(name, prefix) {
		return errors.New("it is not a name that the control plane gives")
	}
	until := now.Add(min(max(r.Until.Sub(now), deadAfter), JoinPatience)) // clocks of members differ
	p.starting[name] = expected{until: until, workers: 1, jobs: r.Jobs, kept: true, started: r.Started,
		again: !r.Started}
	return nil
}

// RestoreNode takes a node that an earlier leader knew and that has not called this leader yet. It is called after
// Restore.
func (p *Pool) RestoreNode(n Node) {
	_, known := p.starting[n.Name]
	switch {
	case n.Workers == 0:
	case n.Asked:
		if strings.HasPrefix(n.Name, prefix) {
			p.stopping[n.Name] = false
		}
	case !known:
		p.starting[n.Name] = expected{until: p.Heard, workers: n.Workers}
	}
}

// Record returns what is stored of a worker now. It reports false if nothing is: the worker is not expected any more.
func (p *Pool) Record(name string) (record.PooledWorker, bool) {
	w, ok := p.starting[name]
	return record.PooledWorker{Started: w.started, Until: w.until, Jobs: w.jobs}, ok
}

// Step reviews the pool.
func (p *Pool) Step(v View) (d Decision) {
	p.reviewExpected(&v, &d)
	p.reviewStopping(&v, &d)
	d.Inputs = p.inputs(&v)
	law := autoscale.DecidePool(p.state, d.Inputs)
	d.Why, d.Changed = law.Why, law.Start > 0 || law.Stop > 0 || law.Held && !p.held
	p.state, p.held = law.After, law.Held
	d.Start = p.start(&v, law.Start)
	d.Again = p.startAgain(&v)
	d.Drain = p.drainSurplus(&v, law.Stop)
	if v.Now.After(p.Adopted) { // before that, leases that ranks hold may be unknown
		d.Stop = p.stopDrained(&v, d.Drain)
	}
	return d
}

// alive reports whether a node's heartbeats arrive.
func (v *View) alive(name string) bool {
	return slices.ContainsFunc(v.Nodes, func(n Node) bool { return n.Name == name })
}

// reviewExpected forgets expected workers that have joined, and gives up those that took too long.
func (p *Pool) reviewExpected(v *View, d *Decision) {
	for name, w := range p.starting {
		joined := v.alive(name)
		if !joined && !v.Now.After(w.until) {
			continue
		}
		delete(p.starting, name)
		if !w.kept {
			continue
		}
		d.Settled = append(d.Settled, name)
		if !joined {
			d.Late = append(d.Late, name)
		}
	}
	slices.Sort(d.Settled)
	slices.Sort(d.Late)
}

// reviewStopping forgets workers that have gone, and finds those that an earlier leader or an operator drained.
func (p *Pool) reviewStopping(v *View, d *Decision) {
	for name := range p.stopping {
		if !v.alive(name) && !v.Now.Before(p.Heard) {
			delete(p.stopping, name)
			d.Gone = append(d.Gone, name)
		}
	}
	slices.Sort(d.Gone)
	for _, n := range v.Nodes {
		if _, known := p.stopping[n.Name]; n.Asked && !known && strings.HasPrefix(n.Name, prefix) {
			p.stopping[n.Name] = false
		}
	}
}

// inputs collects the inputs of autoscale.DecidePool.
func (p *Pool) inputs(v *View) autoscale.PoolInputs {
	in := autoscale.PoolInputs{Seconds: v.Seconds, Least: p.Least, Most: p.Most, Idle: p.Idle.Seconds(),
		Wanted: v.Wanted}
	for _, w := range p.starting {
		in.Starting += w.workers
	}
	live := slices.DeleteFunc(slices.Clone(v.Nodes), func(n Node) bool { return !n.works() })
	for _, n := range live {
		in.Live += n.Workers
		if strings.HasPrefix(n.Name, prefix) {
			in.Pooled += n.Workers
		}
		part := 1 / float64(len(live))
		in.CPU += part * bounded(n.CPU)
		in.Memory += part * bounded(n.Memory)
		in.Network += part * bounded(n.Network)
		in.Buffered += part * float64(max(n.Buffered, 0))
	}
	if !v.Now.After(p.Adopted) { // A job whose ranks have not called this leader yet does not say what it wants.
		have := in.Live + in.Starting
		in.Wanted, in.Most = max(in.Wanted, have), max(in.Most, have)
	}
	return in
}

// works reports whether a node has workers that take work of every rank.
func (n *Node) works() bool { return !n.Draining && n.Workers > 0 }

// bounded returns a share from 0 to 1. A value that is not a share counts as unknown, which is 0.
func bounded(share float64) float64 {
	if !(share > 0) {
		return 0
	}
	return min(share, 1)
}

// start names workers that are to be started.
func (p *Pool) start(v *View, count int) (c Call) {
	for range count {
		p.named++
		name := fmt.Sprintf("%s%x-%d", prefix, p.Fence, p.named)
		p.starting[name] = expected{until: v.Now.Add(JoinPatience), workers: 1, kept: true, jobs: v.Jobs}
		c.Names = append(c.Names, name)
	}
	if count > 0 {
		c.Jobs = v.Jobs
	}
	return c
}

// startAgain returns the workers that an earlier leader was starting when it ended, once a worker that runs has joined.
func (p *Pool) startAgain(v *View) (c Call) {
	if v.Now.Before(p.Heard) {
		return c
	}
	for name, w := range p.starting {
		if w.again {
			w.again, w.until = false, v.Now.Add(JoinPatience)
			p.starting[name] = w
			c.Names, c.Jobs = append(c.Names, name), append(c.Jobs, w.jobs...)
		}
	}
	slices.Sort(c.Names)
	slices.Sort(c.Jobs)
	c.Jobs = slices.Compact(c.Jobs)
	return c
}

// Started records the end of a call of the hook that was to start workers. Workers whose call failed are expected no
// more: autoscale.DecidePool decides again.
func (p *Pool) Started(names []string, succeeded bool) {
	for _, name := range names {
		if w, ok := p.starting[name]; ok && succeeded {
			w.started = true
			p.starting[name] = w
		} else {
			delete(p.starting, name)
		}
	}
}

// drainSurplus chooses workers of the pool that are to be stopped, first those that have the fewest leases.
func (p *Pool) drainSurplus(v *View, count int) (names []string) {
	live := slices.DeleteFunc(slices.Clone(v.Nodes), func(n Node) bool {
		return !n.works() || !strings.HasPrefix(n.Name, prefix)
	})
	slices.SortFunc(live, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Busy, b.Busy), cmp.Compare(a.Name, b.Name))
	})
	for _, n := range live[:min(count, len(live))] {
		p.stopping[n.Name] = false
		names = append(names, n.Name)
	}
	return names
}

// stopDrained returns the drained workers whose leases have ended. A worker that is drained from now on may be granted
// leases before the owner carries the decision out.
func (p *Pool) stopDrained(v *View, drainedNow []string) (c Call) {
	for name, asked := range p.stopping {
		works := slices.ContainsFunc(v.Nodes, func(n Node) bool { return n.Name == name && n.Busy > 0 })
		if !asked && !works && !slices.Contains(drainedNow, name) {
			p.stopping[name] = true
			c.Names = append(c.Names, name)
		}
	}
	slices.Sort(c.Names)
	if len(c.Names) > 0 {
		c.Jobs = v.Jobs
	}
	return c
}

// StopFailed records that a call of the hook that was to stop workers has failed: the hook is called again.
func (p *Pool) StopFailed(names []string) {
	for _, name := range names {
		if _, known := p.stopping[name]; known {
			p.stopping[name] = false
		}
	}
}
