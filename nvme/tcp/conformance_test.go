package tcp_test

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/nvme/tcp/hosttest"
)

// locked is flash for hosts that read what others write, as happens where a lost command is sent again.
type locked struct {
	ram
	mu sync.Mutex
}

func (l *locked) ReadAt(p []byte, off int64) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ram.ReadAt(p, off)
}

func (l *locked) WriteAt(p []byte, off int64) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ram.WriteAt(p, off)
}

// The initiator against package tcp's own target, with little and much data in a PDU and both sizes of block. Package
// kerneltest has it judged by the kernel's.
func TestHost(t *testing.T) {
	t.Parallel()
	const friend = "nqn.2024-01.io.millrace:friend"
	for _, c := range []struct {
		most  int // MAXH2CDATA; 0: the default
		block uint32
	}{{0, 512}, {4096, 4096}, {65536, 512}} {
		t.Run(fmt.Sprintf("MAXH2CDATA %d, blocks of %d", c.most, c.block), func(t *testing.T) {
			t.Parallel()
			drive, err := controller.New(controller.Options{Flash: &locked{ram: make(ram, hosttest.MinSize)},
				BlockSize: c.block})
			require.NoError(t, err)
			target, err := tcp.NewTarget(tcp.TargetOptions{Hosts: []string{friend}, MaxH2CData: c.most})
			require.NoError(t, err)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			at := netip.MustParseAddrPort(l.Addr().String())
			discovery := controller.NewDiscovery(controller.DiscoveryOptions{Entries: []fabrics.Entry{
				{Type: fabrics.CurrentDiscovery, Port: 1, Address: at, NQN: fabrics.DiscoveryNQN}, {Type: fabrics.NVM, Port: 1,
					Address: at, NQN: drive.NQN()},
			}})
			require.NoError(t, target.Add(drive))
			require.NoError(t, target.Add(discovery))
			served := make(chan error, 1)
			go func() { served <- target.Serve(l) }()
			hosttest.Run(t, hosttest.Target{
				Address: l.Addr().String(), Subsystem: drive.NQN(), HostNQN: friend, BlockSize: c.block,
				OtherHost: "nqn.2024-01.io.millrace:stranger", Aborts: true, KeepsConnection: true,
			})
			require.NoError(t, target.Close())
			require.ErrorIs(t, <-served, tcp.ErrTargetClosed)
			require.Zero(t, drive.Associations())
		})
	}
}
