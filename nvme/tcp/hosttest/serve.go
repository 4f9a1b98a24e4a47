package hosttest

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/tcp"
)

// Serve serves a drive on loopback until the test ends, and returns its address. The test closes the drive by an
// earlier Cleanup.
func Serve(t testing.TB, drive *controller.Subsystem, o tcp.TargetOptions) (address string) {
	t.Helper()
	return ServeBehind(t, drive, o, func(l net.Listener) net.Listener { return l })
}

// ServeBehind is Serve with a listener around that of the target.
func ServeBehind(t testing.TB, drive *controller.Subsystem, o tcp.TargetOptions,
	wrap func(net.Listener) net.Listener) (address string) {
	t.Helper()
	target, err := tcp.NewTarget(o)
	require.NoError(t, err)
	require.NoError(t, target.Add(drive))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- target.Serve(wrap(l)) }()
	t.Cleanup(func() {
		assert.NoError(t, target.Close())
		assert.ErrorIs(t, <-done, tcp.ErrTargetClosed)
	})
	return l.Addr().String()
}
