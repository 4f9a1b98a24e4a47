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

// begin notes that an execution begins.
func (b *hostBudget) begin() { b.computing++ }

// end notes that an execution ends.
func (b *hostBudget) end(now time.Time) {
	b.computing--
	b.ended = now
}

// binds reports whether regions compute, so that ordinary commands are limited.
func (b *hostBudget) binds(now time.Time) bool {
	return b.computing > 0 || now.Sub(b.ended) < computingLinger
}

// wait returns how long the next command has to wait, 0 if it may begin.
func (b *hostBudget) wait(now time.Time) time.Duration {
	earned := time.Duration(float64(now.Sub(b.counted)) * b.share)
	b.credit, b.counted = min(hostIOBurst, b.credit+earned), now
	if !b.binds(now) {
		b.credit = hostIOBurst
	}
	if b.credit >= 0 {
		return 0
	}
	return time.Duration(float64(-b.credit)/b.share) + 1 // rounded up
}

// spend pays for the time that a command took.
func (b *hostBudget) spend(took time.Duration) { b.credit -= took }

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
	g.budget.begin()
}

func (g *hostGate) endExecution() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.budget.end(g.now())
}

func (g *hostGate) binds() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.budget.binds(g.now())
}

// wait returns how long the command whose turn it is has to wait until it looks again, 0 if it may begin. Regions that
// end their work end its wait.
func (g *hostGate) wait() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return min(g.budget.wait(g.now()), computingLinger)
}

// spend pays for a command that began at a time.
func (g *hostGate) spend(began time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.budget.spend(g.now().Sub(began))
}

// onFlash runs the part of an ordinary command that uses the flash, when the share of such commands allows it. A
// command that is aborted while it waits does not run.
func (r *request) onFlash(use func() nvme.Status) nvme.Status {
	g := r.c.sub.hostIO
	if g == nil || !g.binds() {
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
		wait := g.wait()
		if wait == 0 {
			break
		}
		if r.ns != nil && r.ns.retiring() {
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
	defer g.spend(began)
	return use()
}
