package standin

import (
	"context"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/clock"
	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/sdk/tensor"
)

func TestStepTakesAsLongAsItsRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, err := New(1000)
		require.NoError(t, err)
		mb := tensor.New(&tensor.Schema{}, 500, nil)
		begin := time.Now()
		for range 4 {
			require.NoError(t, tr.Step(t.Context(), mb))
		}
		assert.Equal(t, 2*time.Second, time.Since(begin))
	})
}

// TestADilatedTrainer is as fast on its clock as it says, and slower on the machine's.
func TestADilatedTrainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, err := New(1000)
		require.NoError(t, err)
		tr.Clock = clock.New(7)
		mb := tensor.New(&tensor.Schema{}, 500, nil)
		begin, machine := tr.Clock.Now(), time.Now()
		for range 4 {
			require.NoError(t, tr.Step(t.Context(), mb))
		}
		assert.Equal(t, 2*time.Second, tr.Clock.Now().Sub(begin))
		assert.Equal(t, 14*time.Second, time.Since(machine))
	})
}

// TestATrainerThatWaited makes up for a timer that was late, and not for a wait for a mini-batch, also where its clock
// is slower than the machine's.
func TestATrainerThatWaited(t *testing.T) {
	for _, dilate := range []int{1, 1000} {
		for waited, want := range map[time.Duration]time.Duration{
			late - time.Millisecond: time.Second, // from the first step's end to the second's, in the clock's time
			late + time.Millisecond: time.Second + (late+time.Millisecond)/time.Duration(dilate),
		} {
			synctest.Test(t, func(t *testing.T) {
				tr, err := New(500)
				require.NoError(t, err)
				tr.Clock = clock.New(dilate)
				mb := tensor.New(&tensor.Schema{}, 500, nil)
				require.NoError(t, tr.Step(t.Context(), mb))
				begin := tr.Clock.Now()
				time.Sleep(waited)
				require.NoError(t, tr.Step(t.Context(), mb))
				assert.Equal(t, want, tr.Clock.Now().Sub(begin), "%v of the machine, times are %d times as long", waited,
					dilate)
			})
		}
	}
}

func TestStepEndsWithItsContext(t *testing.T) {
	tr, err := New(1)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, tr.Step(ctx, tensor.New(&tensor.Schema{}, 1000, nil)), context.Canceled)
}

// TestABusyTrainerUsesAProcessor checks that a step uses its share of a processor, and takes as long as it says at
// least.
func TestABusyTrainerUsesAProcessor(t *testing.T) {
	tr, err := NewBusy(1000, 0.5)
	require.NoError(t, err)
	mb := tensor.New(&tensor.Schema{}, 40, nil)
	begin, used := time.Now(), processors.Time()
	require.NoError(t, tr.Step(t.Context(), mb))
	assert.GreaterOrEqual(t, time.Since(begin), 39*time.Millisecond)
	if runtime.GOOS == "linux" {
		assert.GreaterOrEqual(t, processors.Time()-used, 15*time.Millisecond)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, tr.Step(ctx, mb), context.Canceled)
	for _, share := range []float64{-0.1, 1.1, math.NaN()} {
		_, err := NewBusy(1000, share)
		require.ErrorIs(t, err, ErrSpeed)
	}
	_, err = NewBusy(0, 1)
	require.ErrorIs(t, err, ErrSpeed)
}

func TestSpeedsRefused(t *testing.T) {
	for _, v := range []float64{0, -1, math.NaN()} {
		_, err := New(v)
		require.ErrorIs(t, err, ErrSpeed)
	}
}
