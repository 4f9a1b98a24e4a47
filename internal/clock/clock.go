// Package clock is the time of modelled drives, which may be slower than the machine's, so that many modelled drives
// run on few cores.
//
// # Concurrency
//
// A Clock does not change and is safe for concurrent use.
package clock

import (
	"context"
	"time"
)

// Clock is a time that passes slower than the machine's by a factor. nil is the machine's time.
type Clock struct {
	begin  time.Time
	factor time.Duration
}

// New returns a clock on which a second is factor seconds of the machine. A factor below 1 is 1.
func New(factor int) *Clock { return &Clock{begin: time.Now(), factor: time.Duration(max(factor, 1))} }

// Factor returns how many seconds of the machine a second of the clock is.
func (c *Clock) Factor() int {
	if c == nil {
		return 1
	}
	return int(c.factor)
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	if c == nil {
		return time.Now()
	}
	return c.begin.Add(time.Since(c.begin) / c.factor)
}

// Before returns the clock's time as it was a length of the machine's time ago.
func (c *Clock) Before(d time.Duration) time.Time { return c.Now().Add(-d / time.Duration(c.Factor())) }

// Wait waits for a length of the clock's time, and returns the cause if ctx ends first.
func (c *Clock) Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d * time.Duration(c.Factor()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
