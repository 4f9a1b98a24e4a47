package discovery_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/nvme/tcp/discovery"
)

func TestDiscover(t *testing.T) {
	target, err := tcp.NewTarget(tcp.TargetOptions{})
	require.NoError(t, err)
	entries := []fabrics.Entry{
		{Type: fabrics.CurrentDiscovery, Address: netip.MustParseAddrPort("10.0.2.2:8009"), NQN: fabrics.DiscoveryNQN},
		{Type: fabrics.NVM, Address: netip.MustParseAddrPort("10.0.2.2:4420"), NQN: "nqn.2024-01.io.millrace:test"},
		{Type: fabrics.Referral, Address: netip.MustParseAddrPort("10.0.2.3:8009"), NQN: fabrics.DiscoveryNQN},
	}
	sub := controller.NewDiscovery(controller.DiscoveryOptions{Entries: entries})
	require.NoError(t, target.Add(sub))
	require.Error(t, target.Add(sub), "there is one already")
	var addresses []string
	done := make(chan error, 2)
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		addresses = append(addresses, l.Addr().String())
		go func() { done <- target.Serve(l) }()
	}
	for _, at := range addresses {
		got, err := discovery.Discover(t.Context(), tcp.DialOptions{Address: at})
		require.NoError(t, err)
		require.Equal(t, entries, got)
	}
	// A host that stays gets the events of changes.
	changed := make(chan nvme.AsyncEvent, 1)
	h, err := tcp.Dial(t.Context(), tcp.DialOptions{Address: addresses[0], Subsystem: fabrics.DiscoveryNQN,
		OnEvent: func(e nvme.AsyncEvent) { changed <- e }})
	require.NoError(t, err)
	sub.SetEntries(entries[:1])
	require.Equal(t, uint8(fabrics.LogDiscovery), (<-changed).Log)
	cmd := nvme.Read(1, 0, 1, 512)
	_, err = h.IO(t.Context(), &cmd, make([]byte, 512))
	require.ErrorIs(t, err, nvme.InvalidQueueID, "no I/O queues")
	require.NoError(t, h.Close())
	got, err := discovery.Discover(t.Context(), tcp.DialOptions{Address: addresses[0]})
	require.NoError(t, err)
	require.Equal(t, entries[:1], got)
	require.NoError(t, target.Close())
	for range addresses {
		assert.ErrorIs(t, <-done, tcp.ErrTargetClosed)
	}
	late, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.ErrorIs(t, target.Serve(late), tcp.ErrTargetClosed)
}
