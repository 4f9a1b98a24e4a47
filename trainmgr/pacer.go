package trainmgr

import (
	"context"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/internal/wait"
)

const (
	// pacerPeriod is the time for which a pacer's budget grows while the local side does not use it, like the period of
	// a control group.
	pacerPeriod = 100 * time.Millisecond
	// pacerMargin is the factor by which the limit exceeds the CPUs that the trainer leaves free, because both are
	// measured with errors.
	pacerMargin = 1.1
)

// pacer limits the CPU time that the local side uses, by a budget that grows by some CPU seconds a second. A stream
// begins a mini-batch if the budget is not used up. When the mini-batch is made, the stream pays the CPU time of the
// thread that made it. So the limit holds over a few mini-batches and a period, and no thread is stopped while it
// makes a mini-batch (docs/rationale.md says why not a control group or nice).
type pacer struct {
	now     func() time.Time
	refresh func() // computes the limit again, if that is due; nil: never

	mu     sync.Mutex
	cores  float64 // CPU seconds a second; 0: no limit
	budget float64 // CPU seconds; while it is below 0, streams wait
	filled time.Time
	used   float64       // CPU seconds, in total
	waited time.Duration // by all streams together
}

// setLimit changes the limit. 0 means none.
func (p *pacer) setLimit(cores float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fill()
	p.cores = cores
}

// fill adds the CPU time since the last call to the budget. p.mu is held.
func (p *pacer) fill() {
	now := p.now()
	if !p.filled.IsZero() {
		p.budget += p.cores * now.Sub(p.filled).Seconds()
	}
	p.filled = now
	p.budget = math.Min(p.budget, p.cores*pacerPeriod.Seconds())
}

// wanting returns how long a mini-batch has to wait; 0 means that the mini-batch may begin.
func (p *pacer) wanting() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fill()
	if p.cores == 0 || p.budget >= 0 {
		return 0
	}
	return min(secondsOf(-p.budget/p.cores)+1, pacerPeriod) // the limit may change meanwhile
}

// wait waits until a mini-batch may begin.
func (p *pacer) wait(ctx context.Context) error {
	for {
		if p.refresh != nil {
			p.refresh()
		}
		pause := p.wanting()
		if pause == 0 {
			return nil
		}
		begun := p.now()
		err := wait.Sleep(ctx, pause)
		p.mu.Lock()
		p.waited += p.now().Sub(begun)
		p.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// pay takes the CPU time of a mini-batch from the budget.
func (p *pacer) pay(seconds float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fill()
	p.used += seconds
	if p.cores > 0 {
		p.budget -= seconds
	}
}

// run makes a mini-batch within the limit. foretold is the expected CPU time of a mini-batch, if known, for systems
// that do not report the CPU time of a thread.
func (p *pacer) run(ctx context.Context, foretold float64, next func() error) error {
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

// pacerState is the part of a report about a pacer.
type pacerState struct {
	cores, used float64
	waited      time.Duration
}

func (p *pacer) state() pacerState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return pacerState{p.cores, p.used, p.waited}
}
