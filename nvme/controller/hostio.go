package controller

import (
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/hostshare"
)

// Bounds of Options.HostIOShare, in percent.
const (
	// MinHostIOShare leaves 128 commands of 10 ms each, a full queue, 26 s: less than the 30 s after which Linux takes a
	// drive for dead.
	MinHostIOShare = 5
	// NoHostIOLimit is the share of a drive that does not limit ordinary commands.
	NoHostIOLimit = 100
)

// checkHostIOShare returns an error for a share that no drive has. 0 stands for NoHostIOLimit.
func checkHostIOShare(percent int) error {
	if percent != 0 && (percent < MinHostIOShare || percent > NoHostIOLimit) {
		return fmt.Errorf("a share of %d %% of the time for ordinary reads and writes: %d to %d are possible, where %d is "+
			"no limit", percent, MinHostIOShare, NoHostIOLimit, NoHostIOLimit)
	}
	return nil
}

// hostGate lets ordinary commands to the flash, one at a time and within their budget while regions compute, and all at
// once otherwise. A nil gate has no limit.
type hostGate struct {
	now  func() time.Time
	turn chan struct{} // holds a value while a command is on the flash, or is the next; others wait in order

	mu     sync.Mutex
	budget *hostshare.Budget
}

// newHostGate returns the gate of a share in percent, nil for no limit.
func newHostGate(percent int, now func() time.Time) *hostGate {
	if percent == 0 || percent == NoHostIOLimit {
		return nil
	}
	return &hostGate{now: now, turn: make(chan struct{}, 1), budget: hostshare.New(float64(percent)/100, now())}
}

// beginExecution notes that a region computes, until endExecution.
func (g *hostGate) beginExecution() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.budget.BeginExecution()
}

func (g *hostGate) endExecution() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.budget.EndExecution(g.now())
}

func (g *hostGate) limitsCommands() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.budget.LimitsCommands(g.now())
}

// timeToWait returns how long the command whose turn it is has to wait until it looks again, 0 if it may begin. Regions
// that end their work end its wait.
func (g *hostGate) timeToWait() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return min(g.budget.TimeToWait(g.now()), hostshare.Linger)
}

// payForCommand pays for a command that began at a time.
func (g *hostGate) payForCommand(began time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.budget.PayForCommand(g.now().Sub(began))
}

// useFlashInTurn runs the part of an ordinary command that uses the flash, when the share of such commands allows it. A
// command that is aborted while it waits does not run.
func (r *request) useFlashInTurn(use func() nvme.Status) nvme.Status {
	g := r.c.sub.hostIO
	if g == nil || !g.limitsCommands() {
		return use()
	}
	ended := r.context().Done()
	select {
	case g.turn <- struct{}{}:
	case <-ended:
		return nvme.CommandAborted
	}
	defer func() { <-g.turn }()
	for {
		wait := g.timeToWait()
		if wait == 0 {
			break
		}
		if r.ns != nil && r.ns.isRetiring() {
			return nvme.InvalidNamespace
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ended:
			timer.Stop()
			return nvme.CommandAborted
		}
	}
	began := g.now()
	defer g.payForCommand(began)
	return use()
}
