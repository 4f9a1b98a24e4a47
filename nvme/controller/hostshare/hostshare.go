// Package hostshare divides the time on a drive's flash between ordinary commands of hosts and the work of regions. It
// is pure: its caller has the clock and the lock.
package hostshare

import "time"

const (
	// burst is the time on the flash that ordinary commands have saved up at most, so that a few of them pass without
	// waiting.
	burst = time.Millisecond
	// Linger is how long a drive counts as computing after its last execution: the slices of a job follow each other in
	// less.
	Linger = 10 * time.Millisecond
)

// Budget is the time on the flash that ordinary commands have while regions compute. It grows with the time that
// passes, by the share; a command may begin unless time is owed, and pays for the time that it took.
type Budget struct {
	share     float64       // The share of the time is above 0 and below 1.
	credit    time.Duration // at most burst; below 0: owed
	counted   time.Time     // when credit was
	computing int           // executions, of all regions
	ended     time.Time     // when the last execution ended
}

// New returns the budget of a share of the time, which is above 0 and below 1, from now on.
func New(share float64, now time.Time) *Budget { return &Budget{share: share, counted: now} }

// BeginExecution notes that an execution begins.
func (b *Budget) BeginExecution() { b.computing++ }

// EndExecution notes that an execution ends.
func (b *Budget) EndExecution(now time.Time) {
	b.computing--
	b.ended = now
}

// LimitsCommands reports whether regions compute, so that ordinary commands are limited.
func (b *Budget) LimitsCommands(now time.Time) bool {
	return b.computing > 0 || now.Sub(b.ended) < Linger
}

// TimeToWait returns how long the next command has to wait, 0 if it may begin.
func (b *Budget) TimeToWait(now time.Time) time.Duration {
	earned := time.Duration(float64(now.Sub(b.counted)) * b.share)
	b.credit, b.counted = min(burst, b.credit+earned), now
	if !b.LimitsCommands(now) {
		b.credit = burst
	}
	if b.credit >= 0 {
		return 0
	}
	return time.Duration(float64(-b.credit)/b.share) + 1 // rounded up
}

// PayForCommand pays for the time that a command took.
func (b *Budget) PayForCommand(took time.Duration) { b.credit -= took }
