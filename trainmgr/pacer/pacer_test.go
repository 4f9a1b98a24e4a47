package pacer

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/internal/shared"
)

// TestPacerHoldsItsLimit requests mini-batches of different CPU times, one after the other, on the test's clock. Over
// ten seconds they use at least 90 % of the limit less one mini-batch, and at most the limit plus one mini-batch and a
// period.
func TestPacerHoldsItsLimit(t *testing.T) {
	for _, cores := range []float64{0.01, 0.25, 1, 3.5} {
		clock := time.Unix(1000, 0)
		p := Pacer{Now: func() time.Time { return clock }}
		p.SetLimit(cores)
		begun, used, largest := clock, 0.0, 0.0
		for i := 0; clock.Sub(begun) < 10*time.Second; i++ {
			pause := p.wanting()
			if pause > 0 {
				require.LessOrEqual(t, pause, period)
				clock = clock.Add(pause)
				continue
			}
			seconds := float64(1+i%7) * 0.004
			largest = max(largest, seconds)
			p.pay(seconds)
			used += seconds
			clock = clock.Add(time.Duration(seconds / 4 * float64(time.Second))) // four threads at once
		}
		passed := clock.Sub(begun).Seconds()
		assert.LessOrEqual(t, used, cores*(passed+period.Seconds())+largest, "%v cores", cores)
		assert.GreaterOrEqual(t, used, 0.9*cores*passed-largest, "%v cores", cores)
		assert.InDelta(t, used, p.State().Used, 1e-9)
	}
}

// TestPacerWithoutALimit checks that a pacer without a limit never waits, and that the allowance of a side that is idle
// does not grow beyond one period.
func TestPacerWithoutALimit(t *testing.T) {
	clock := time.Unix(1000, 0)
	p := Pacer{Now: func() time.Time { return clock }}
	for range 100 {
		assert.Zero(t, p.wanting())
		p.pay(10)
	}
	p.SetLimit(2)
	clock = clock.Add(time.Hour)
	assert.Zero(t, p.wanting())
	p.pay(2*period.Seconds() + 0.1)
	assert.InDelta(t, 0.05, p.wanting().Seconds(), 1e-6)
	p.SetLimit(0)
	assert.Zero(t, p.wanting(), "the limit is gone")
}

// TestPacerEndsWithItsContext runs a mini-batch under a limit near zero: the wait ends with the context's error, no
// mini-batch is made, and the wait is counted.
func TestPacerEndsWithItsContext(t *testing.T) {
	p := Pacer{Now: time.Now}
	p.SetLimit(1e-9)
	p.pay(1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := p.Run(ctx, 0, func() error { t.Error("a mini-batch was made"); return nil })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Positive(t, p.State().Waited)
}

// TestPacerLimitsThreads lets two threads work for a second and a half as fast as they can: together they use at most
// the limit's share of a processor and 0.12 s more. It does not check how much they use at least.
func TestPacerLimitsThreads(t *testing.T) {
	if _, known := processors.ThreadTime(); !known {
		shared.Missing(t, "the processor time of a thread is not known here")
	}
	p := Pacer{Now: time.Now}
	p.SetLimit(0.2)
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	begun := time.Now()
	var threads sync.WaitGroup
	for range 2 {
		threads.Go(func() {
			for ctx.Err() == nil {
				err := p.Run(ctx, 0, func() error {
					begun, _ := processors.ThreadTime()
					for used := time.Duration(0); used < 2*time.Millisecond; {
						now, _ := processors.ThreadTime()
						used = now - begun
					}
					return nil
				})
				if err != nil {
					assert.ErrorIs(t, err, context.DeadlineExceeded)
				}
			}
		})
	}
	threads.Wait()
	passed := time.Since(begun).Seconds()
	assert.LessOrEqual(t, p.State().Used, 0.2*(passed+0.1)+0.1, "in %.1f s", passed)
	assert.Positive(t, p.State().Used)
}
