package tcp

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme/controller"
)

// gatedFlash holds the first write back until the gate opens.
type gatedFlash struct {
	controller.Flash
	writes  atomic.Int32
	reached chan struct{} // the first write is there
	gate    chan struct{}
}

func (f *gatedFlash) WriteAt(p []byte, off int64) (int, error) {
	if f.writes.Add(1) == 1 {
		close(f.reached)
		<-f.gate
	}
	return f.Flash.WriteAt(p, off)
}

// TestALateWriteOfALostConnection checks that a host that lost a connection is not connected again while the drive
// still executes a write that the old connection carried: a retried write, and the ones that follow it, come later.
func TestALateWriteOfALostConnection(t *testing.T) {
	noLeaks(t)
	flash := &gatedFlash{Flash: newFlash(1 << 20), reached: make(chan struct{}), gate: make(chan struct{})}
	s := serveSubsystem(t, controller.Options{Flash: flash, NQN: testNQN, Serial: "S1"})
	var mu sync.Mutex
	var sockets []net.Conn
	h := s.dial(DialOptions{Queues: 1, FirstDelay: time.Millisecond, LongestDelay: 20 * time.Millisecond,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, address)
			mu.Lock()
			defer mu.Unlock()
			sockets = append(sockets, nc)
			return nc, err
		}})
	old, later := pattern(4096, 1), pattern(4096, 2)
	written := make(chan error, 1)
	go func() { written <- write(context.Background(), h, 0, old) }()
	<-flash.reached
	mu.Lock()
	for _, nc := range sockets {
		_ = nc.Close() // the host closes the others when it loses the first
	}
	mu.Unlock()
	select {
	case err := <-written:
		t.Errorf("the write was made again beside the one that still runs: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	assert.Zero(t, h.Stats().Reconnects)
	close(flash.gate)
	require.NoError(t, <-written)
	require.NoError(t, write(context.Background(), h, 0, later))
	got := make([]byte, len(later))
	require.NoError(t, read(context.Background(), h, 0, got))
	require.Equal(t, later, got)
	require.EqualValues(t, 1, h.Stats().Reconnects)
	require.NoError(t, h.Close())
}
