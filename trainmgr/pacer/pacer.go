// Package pacer limits the CPU time that the trainer's own workers use.
//
// # Concurrency
//
// A [Pacer] may be used from any goroutine. It calls Refresh without its lock.
package pacer

import (
	"context"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/internal/wait"
)

// period is the time for which a pacer's budget grows while the local side does not use it, like the period of a
// control group.
const period = 100 * time.Millisecond

// Pacer limits the CPU time that the local side uses, by a budget that grows by some CPU seconds a second. A stream
// begins a mini-batch if the budget is not used up. When the mini-batch is made, the stream pays the CPU time of the
// thread that made it. So the limit holds over a few mini-batches and a period, and no thread is stopped while it
// makes a mini-batch (docs/rationale.md says why not a control group or nice).
type Pacer struct {
	Now     func() time.Time
	Refresh func() // computes the limit again, if that is due; nil: never

	mu     sync.Mutex
	cores  float64 // CPU seconds a second; 0: no limit
	budget float64 // CPU seconds; while it is below 0, streams wait
	filled time.Time
	used   float64       // CPU seconds, in total
	waited time.Duration // by all streams together
}

// SetLimit changes the limit. 0 means none.
func (p *Pacer) SetLimit(cores float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fill()
	p.cores = cores
}

// fill adds the CPU time since the last call to the budget. p.mu is held.
func (p *Pacer) fill() {
	now := p.Now()
	if !p.filled.IsZero() {
		p.budget += p.cores * now.Sub(p.filled).Seconds()
	}
	p.filled = now
	p.budget = math.Min(p.budget, p.cores*period.Seconds())
}

// wanting returns how long a mini-batch has to wait; 0 means that the mini-batch may begin.
func (p *Pacer) wanting() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fill()
	if p.cores == 0 || p.budget >= 0 {
		return 0
	}
	pause := math.Min(-p.budget/p.cores, period.Seconds()) // the limit may change meanwhile
	return min(time.Duration(pause*float64(time.Second))+1, period)
}

// wait waits until a mini-batch may begin.
func (p *Pacer) wait(ctx context.Context) error {
	for {
		if p.Refresh != nil {
			p.Refresh()
		}
		pause := p.wanting()
		if pause == 0 {
			return nil
		}
		begun := p.Now()
		err := wait.Sleep(ctx, pause)
		p.mu.Lock()
		p.waited += p.Now().Sub(begun)
		p.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// pay takes the CPU time of a mini-batch from the budget.
func (p *Pacer) pay(seconds float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fill()
	p.used += seconds
	if p.cores > 0 {
		p.budget -= seconds
	}
}

// Run makes a mini-batch within the limit. foretold is the expected CPU time of a mini-batch, if known, for systems
// that do not report the CPU time of a thread.
func (p *Pacer) Run(ctx context.Context, foretold float64, next func() error) error {
	if err := p.wait(ctx); err != nil {
		return err
	}
	runtime.LockOSThread()
	begun, known := processors.ThreadTime()
	err := next()
	ended, _ := processors.ThreadTime()
	runtime.UnlockOSThread()
	if known {
		foretold = (ended - begun).Seconds()
	}
	p.pay(foretold)
	return err
}

// State is the part of a report about a pacer.
type State struct {
	Cores, Used float64 // CPU seconds a second, and CPU seconds in total
	Waited      time.Duration
}

// State returns the limit, what was used and how long streams waited.
func (p *Pacer) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return State{p.cores, p.used, p.waited}
}
