package wait

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSleepEndsWithItsContext(t *testing.T) {
	require.NoError(t, Sleep(t.Context(), time.Millisecond))
	require.NoError(t, Sleep(t.Context(), -time.Second))
	cause := errors.New("the cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	require.ErrorIs(t, Sleep(ctx, time.Hour), cause)
	require.ErrorIs(t, Sleep(ctx, 0), cause)
}

func TestBackoffDoubles(t *testing.T) {
	b := Backoff{First: 2, Longest: 7}
	for _, want := range []time.Duration{2, 4, 7, 7} {
		assert.Equal(t, want, b.Next())
	}
	b.Reset()
	assert.Equal(t, time.Duration(2), b.Next())
	require.NoError(t, b.Sleep(t.Context()))
}

func TestBroadcastWakesAll(t *testing.T) {
	var (
		b     Broadcast
		woken sync.WaitGroup
	)
	b.Broadcast() // nobody waits
	first := b.Changed()
	for range 3 {
		changed := b.Changed()
		woken.Go(func() { <-changed })
	}
	b.Broadcast()
	woken.Wait()
	<-first
	select {
	case <-b.Changed():
		t.Fatal("a wait that began after the broadcast ended")
	default:
	}
}
