package tcp

import (
	"net"
	"testing"
	"time"
	"unsafe"

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

// TestATargetFollowsTheMonotonicClock sets the machine's time forward by an hour: no connection is cut off that has
// been waiting for a moment.
func TestATargetFollowsTheMonotonicClock(t *testing.T) {
	for name, start := range map[string]func(*connection){
		"a PDU is received":          func(c *connection) { c.rx.Awaits.Start() },
		"answers are written":        func(c *connection) { c.out.Writing.Start() },
		"data of a write is awaited": func(c *connection) { c.awaitingSince = time.Now() },
		"no Connect has come":        func(*connection) {},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := NewTarget(TargetOptions{})
			require.NoError(t, err)
			defer func() { require.NoError(t, target.Close()) }()
			here, there := net.Pipe()
			defer there.Close()
			c := newConnection(target, here)
			start(c)
			c.checkProgress(stepped(t, time.Hour))
			require.Nil(t, c.cutBy.Load())
			c.checkProgress(time.Now().Add(time.Hour))
			require.NotNil(t, c.cutBy.Load())
			c.out.Stop(net.ErrClosed)
		})
	}
}
