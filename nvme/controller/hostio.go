package controller

import (
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/nvme"
)

// Bounds of Options.HostIOShare, in percent.
const (
	// MinHostIOShare leaves 128 commands of 10 ms each, a full queue, 26 s: less than the 30 s after which Linux takes a
	// drive for dead.
	MinHostIOShare = 5
	// NoHostIOLimit is the share of a drive that does not limit ordinary commands.
	NoHostIOLimit = 100
)

const (
	// hostIOBurst is the time on the flash that ordinary commands have saved up at most, so that a few of them pass
	// without waiting.
	hostIOBurst = time.Millisecond
	// computingLinger is how long a drive counts as computing after its last execution: the slices of a job follow each
	// other in less.
	computingLinger = 10 * time.Millisecond
)

// checkHostIOShare returns an error for a share that no drive has. 0 stands for NoHostIOLimit.
func checkHostIOShare(percent int) error {
	if percent != 0 && (percent < MinHostIOShare || percent > NoHostIOLimit) {
		return fmt.Errorf("a share of %d %% of the time for ordinary reads and writes: %d to %d are possible, where %d is "+
			"no limit", percent, MinHostIOShare, NoHostIOLimit, NoHostIOLimit)
	}
	return nil
}

// hostBudget is the time on the flash that ordinary commands have while regions compute. It grows with the time that
// passes, by the share; a command may begin unless time is owed, and pays for the time that it took. It has neither
// clock nor lock.
type hostBudget struct {
	share     float64       // The share of the time is above 0 and below 1.
	credit    time.Duration // at most hostIOBurst; below 0: owed
	counted   time.Time     // when credit was
	computing int           // executions, of all regions
	ended     time.Time     // when the last execution ended
}

// beginExecution notes that an execution begins.
func (b *hostBudget) beginExecution() { b.computing++ }

// endExecution notes that an execution ends.
func (b *hostBudget) endExecution(now time.Time) {
	b.computing--
	b.ended = now
}

// limitsCommands reports whether regions compute, so that ordinary commands are limited.
func (b *hostBudget) limitsCommands(now time.Time) bool {
	return b.computing > 0 || now.Sub(b.ended) < computingLinger
}

// timeToWait returns how long the next command has to wait, 0 if it may begin.
func (b *hostBudget) timeToWait(now time.Time) time.Duration {
	earned := time.Duration(float64(now.Sub(b.counted)) * b.share)
	b.credit, b.counted = min(hostIOBurst, b.credit+earned), now
	if !b.limitsCommands(now) {
		b.credit = hostIOBurst
	}
	if b.credit >= 0 {
		return 0
	}
	return time.Duration(float64(-b.credit)/b.share) + 1 // rounded up
}

// payForCommand pays for the time that a command took.
func (b *hostBudget) payForCommand(took time.Duration) { b.credit -= took }

// hostGate lets ordinary commands to the flash, one at a time and within their budget while regions compute, and all at
// once otherwise. A nil gate has no limit.
type hostGate struct {
	now  func() time.Time
	turn chan struct{} // holds a value while a command is on the flash, or is the next; others wait in order

	mu     sync.Mutex
	budget hostBudget
}

// newHostGate returns the gate of a share in percent, nil for no limit.
func newHostGate(percent int, now func() time.Time) *hostGate {
	if percent == 0 || percent == NoHostIOLimit {
		return nil
	}
	return &hostGate{now: now, turn: make(chan struct{}, 1),
		budget: hostBudget{share: float64(percent) / 100, counted: now()}}
}

// beginExecution notes that a region computes, until endExecution.
func (g *hostGate) beginExecution() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.budget.beginExecution()
}

func (g *hostGate) endExecution() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.budget.endExecution(g.now())
}

func (g *hostGate) limitsCommands() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.budget.limitsCommands(g.now())
}

// timeToWait returns how long the command whose turn it is has to wait until it looks again, 0 if it may begin. Regions
// that end their work end its wait.
func (g *hostGate) timeToWait() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return min(g.budget.timeToWait(g.now()), computingLinger)
}

// payForCommand pays for a command that began at a time.
func (g *hostGate) payForCommand(began time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.budget.payForCommand(g.now().Sub(began))
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
