package trainmgr

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/internal/shared"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/offload"
)

// TestPacerHoldsItsLimit requests mini-batches of different CPU times, one after the other, on the test's clock. Over
// ten seconds they use at least 90 % of the limit less one mini-batch, and at most the limit plus one mini-batch and a
// period.
func TestPacerHoldsItsLimit(t *testing.T) {
	for _, cores := range []float64{0.01, 0.25, 1, 3.5} {
		clock := time.Unix(1000, 0)
		p := pacer{now: func() time.Time { return clock }}
		p.setLimit(cores)
		begun, used, largest := clock, 0.0, 0.0
		for i := 0; clock.Sub(begun) < 10*time.Second; i++ {
			pause := p.wanting()
			if pause > 0 {
				require.LessOrEqual(t, pause, pacerPeriod)
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
		assert.LessOrEqual(t, used, cores*(passed+pacerPeriod.Seconds())+largest, "%v cores", cores)
		assert.GreaterOrEqual(t, used, 0.9*cores*passed-largest, "%v cores", cores)
		assert.InDelta(t, used, p.state().used, 1e-9)
	}
}

// TestPacerWithoutALimit checks that a pacer without a limit never waits, and that the allowance of a side that is idle
// does not grow beyond one period.
func TestPacerWithoutALimit(t *testing.T) {
	clock := time.Unix(1000, 0)
	p := pacer{now: func() time.Time { return clock }}
	for range 100 {
		assert.Zero(t, p.wanting())
		p.pay(10)
	}
	p.setLimit(2)
	clock = clock.Add(time.Hour)
	assert.Zero(t, p.wanting())
	p.pay(2*pacerPeriod.Seconds() + 0.1)
	assert.InDelta(t, 0.05, p.wanting().Seconds(), 1e-6)
	p.setLimit(0)
	assert.Zero(t, p.wanting(), "the limit is gone")
}

// TestPacerEndsWithItsContext runs a mini-batch under a limit near zero: the wait ends with the context's error, no
// mini-batch is made, and the wait is counted.
func TestPacerEndsWithItsContext(t *testing.T) {
	p := pacer{now: time.Now}
	p.setLimit(1e-9)
	p.pay(1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := p.run(ctx, 0, func() error { t.Error("a mini-batch was made"); return nil })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Positive(t, p.state().waited)
}

// TestPacerLimitsThreads lets two threads work for a second and a half as fast as they can: together they use at most
// the limit's share of a processor and 0.12 s more. It does not check how much they use at least.
func TestPacerLimitsThreads(t *testing.T) {
	if _, known := processors.ThreadTime(); !known {
		shared.Missing(t, "the processor time of a thread is not known here")
	}
	p := pacer{now: time.Now}
	p.setLimit(0.2)
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	begun := time.Now()
	var threads sync.WaitGroup
	for range 2 {
		threads.Go(func() {
			for ctx.Err() == nil {
				err := p.run(ctx, 0, func() error {
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
	assert.LessOrEqual(t, p.state().used, 0.2*(passed+0.1)+0.1, "in %.1f s", passed)
	assert.Positive(t, p.state().used)
}

// TestTheLocalSideIsLimited runs a job whose profile has the trainer use nearly every processor: report and log name
// the pacing of the local side, and every row comes. A job whose profile lacks the trainer's CPU time has no limit.
func TestTheLocalSideIsLimited(t *testing.T) {
	for _, cpu := range []float64{0, 1e-9} {
		local, remote := newFake(t, 1005, []int{0, 1}), newFake(t, 1005, []int{0, 1})
		log := &said{}
		o := sharedOptions(local, dataset.Deterministic, -1)
		o.Logger = slog.New(log)
		o.Offload.Metrics = &offload.Metrics{Gthp: 1e9, Lthp: 1e8, Pcycle: 1e-8, Tcycle: cpu, Cores: 1, Supply: 1e8,
			Candidates: []offload.Candidate{{Cut: offload.ReadAndTransforms, Rthp: 1e8, Supply: 1e8}}}
		j, err := Submit(t.Context(), remote, o)
		require.NoError(t, err)
		rows, _ := take(t, j, -1)
		checkRows(t, local, 1005, rows)
		r, err := j.Report(t.Context())
		require.NoError(t, err)
		require.NoError(t, j.Close())
		if cpu == 0 {
			assert.Equal(t, "none", r.Offload.LimitedBy)
			assert.Zero(t, r.Offload.LocalLimit)
			assert.Zero(t, log.count(saysLimited))
			continue
		}
		assert.Equal(t, "pacing", r.Offload.LimitedBy)
		assert.Positive(t, r.Offload.LocalLimit)
		assert.LessOrEqual(t, r.Offload.LocalLimit, 1.1)
		assert.Equal(t, 1, log.count(saysLimited))
	}
}

// saysLimited is the line of the log that says how the local side is limited.
const saysLimited = "INFO the trainer's own workers are paced to the CPU time that the trainer leaves free"
