// Package wait holds what waits are made of: a sleep that a context ends, pauses that double, and a broadcast to
// goroutines that wait for a change.
//
// # Overview
//
//	if err := wait.Sleep(ctx, time.Second); err != nil { ... }   // the cause of the context's end
//
//	pauses := wait.Backoff{First: 50 * time.Millisecond, Longest: time.Second}
//	for try() != nil {
//		if err := pauses.Sleep(ctx); err != nil { ... }
//	}
//
//	changed := t.changed.Changed()   // with the lock that guards t held
//	t.mu.Unlock()
//	<-changed                        // t.changed.Broadcast() wakes it
//
// # Concurrency
//
// Sleep may be called from any goroutine. A [Backoff] has one owner. The lock of the data that a [Broadcast] tells of
// guards the Broadcast too.
package wait

import (
	"context"
	"time"
)

// Sleep waits for a time, or until ctx ends. It returns the cause of the end of ctx, if that came first.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Backoff makes pauses that double from First to Longest.
type Backoff struct {
	First, Longest time.Duration
	last           time.Duration // 0: no pause was made
}

// Next returns the next pause.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(2*b.last, b.First), b.Longest)
	return b.last
}

// Reset makes First the next pause.
func (b *Backoff) Reset() { b.last = 0 }

// Sleep waits for the next pause, or until ctx ends, as the function Sleep does.
func (b *Backoff) Sleep(ctx context.Context) error { return Sleep(ctx, b.Next()) }

// Broadcast wakes every goroutine that waits for a change. The zero value works.
type Broadcast struct{ changed chan struct{} }

// Changed returns a channel that the next Broadcast closes.
func (b *Broadcast) Changed() <-chan struct{} {
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

// Broadcast wakes all goroutines that wait for a channel of Changed.
func (b *Broadcast) Broadcast() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}
