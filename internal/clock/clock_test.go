package clock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestASecondIsFactorSeconds: the clock and its waits are slower than the machine by the factor.
func TestASecondIsFactorSeconds(t *testing.T) {
	for _, factor := range []int{-1, 0, 1, 2, 20} {
		synctest.Test(t, func(t *testing.T) {
			c, want := New(factor), time.Duration(max(factor, 1))
			assert.Equal(t, int(want), c.Factor())
			began, machine := c.Now(), time.Now()
			require.NoError(t, c.Wait(t.Context(), time.Second))
			assert.Equal(t, want*time.Second, time.Since(machine))
			assert.Equal(t, time.Second, c.Now().Sub(began))
		})
	}
}

// TestNoClockIsTheMachines: a nil clock works.
func TestNoClockIsTheMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *Clock
		assert.Equal(t, 1, c.Factor())
		assert.True(t, c.Now().Equal(time.Now()))
		machine := time.Now()
		require.NoError(t, c.Wait(t.Context(), time.Second))
		assert.Equal(t, time.Second, time.Since(machine))
		require.NoError(t, c.Wait(t.Context(), -time.Second))
		assert.Equal(t, time.Second, time.Since(machine))
	})
}

// TestAWaitEndsWithItsContext: with the context's cause.
func TestAWaitEndsWithItsContext(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	require.ErrorIs(t, New(20).Wait(ctx, time.Hour), cause)
	require.ErrorIs(t, New(20).Wait(ctx, 0), cause)
}
