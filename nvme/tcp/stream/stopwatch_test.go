package stream

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stepped returns the present time as time.Now would return it if the machine's time had been set forward by d: the
// reading of the wall clock is later, and that of the monotonic clock is not.
func stepped(t *testing.T, d time.Duration) time.Time {
	t.Helper()
	now := time.Now()
	was := now
	*(*uint64)(unsafe.Pointer(&now)) += uint64(d/time.Second) << 30
	require.Equal(t, d, time.Duration(now.UnixNano()-was.UnixNano()))
	require.Zero(t, now.Sub(was))
	return now
}

func TestStopwatch(t *testing.T) {
	var s Stopwatch
	s.Init()
	assert.False(t, s.Exceeds(0, time.Now().Add(time.Hour)), "it does not run")
	s.Start()
	assert.True(t, s.Running())
	assert.False(t, s.Exceeds(time.Minute, stepped(t, time.Hour)))
	assert.True(t, s.Exceeds(time.Minute, time.Now().Add(time.Hour)))
	s.Stop()
	assert.False(t, s.Exceeds(time.Minute, time.Now().Add(time.Hour)))
}
