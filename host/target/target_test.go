package target_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host/target"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/faults"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/nvme/tcp/discovery"
)

// memoryDrive is a small drive in memory.
var memoryDrive = csd.Options{Size: 1 << 20, SLMBytes: 1 << 20, NQN: "nqn.2024-01.io.millrace:served"}

// start serves at a port that the system picks, until the test ends.
func start(t *testing.T, o target.Options) *target.Target {
	t.Helper()
	o.Listen = "127.0.0.1:0"
	s, err := target.Start(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// dial connects to the drive as a host.
func dial(t *testing.T, s *target.Target, o tcp.DialOptions) *tcp.Host {
	t.Helper()
	o.Address, o.Subsystem = s.Address(), s.Drive().Subsystem().NQN()
	h, err := tcp.Dial(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, h.Close()) })
	return h
}

func active(t *testing.T, h *tcp.Host) []uint32 {
	t.Helper()
	cmd, b := nvme.Identify(nvme.CNSActiveNamespaces, 0, 0), make([]byte, nvme.IdentifySize)
	_, err := h.Admin(t.Context(), &cmd, b)
	require.NoError(t, err)
	return nvme.UnmarshalNamespaceList(b)
}

func TestStartServes(t *testing.T) {
	s := start(t, target.Options{
		Drive: memoryDrive, DiscoveryListen: "127.0.0.1:0", Advertise: netip.MustParseAddrPort("192.0.2.7:0"),
		Referrals: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.8:8009")},
	})
	assert.Equal(t, "tcp://"+s.Address()+"/"+memoryDrive.NQN, s.URI())
	assert.Equal(t, []uint32{1, 2, 3}, active(t, dial(t, s, tcp.DialOptions{})))
	assert.Empty(t, s.Namespaces())

	addresses := s.DiscoveryAddresses()
	require.Len(t, addresses, 2)
	assert.Equal(t, s.Address(), addresses[0])
	drive, second := netip.MustParseAddrPort(addresses[0]), netip.MustParseAddrPort(addresses[1])
	for _, at := range addresses {
		entries, err := discovery.Discover(t.Context(), tcp.DialOptions{Address: at})
		require.NoError(t, err)
		var says []string
		for _, e := range entries {
			says = append(says, e.Type.String()+" "+e.Address.String()+" "+e.NQN)
		}
		advertised := netip.MustParseAddr("192.0.2.7")
		assert.Equal(t, []string{
			"discovery " + netip.AddrPortFrom(advertised, second.Port()).String() + " " + fabrics.DiscoveryNQN,
			"nvm " + netip.AddrPortFrom(advertised, drive.Port()).String() + " " + memoryDrive.NQN,
			"referral 192.0.2.8:8009 " + fabrics.DiscoveryNQN,
		}, says)
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		o      target.Options
		option string
		is     error
	}{
		"an address without a port": {target.Options{Listen: "4420"}, "Listen", nil},
		"open to all":               {target.Options{Listen: "0.0.0.0:0"}, "Hosts", target.ErrOpenToAll},
		"every address": {target.Options{Listen: "0.0.0.0:0", AnyHost: true}, "Advertise",
			target.ErrEveryAddress},
		"a namespace of the drive": {target.Options{Listen: "127.0.0.1:0",
			Namespaces: []target.Namespace{{NSID: 1, Flash: "x"}}}, "Namespaces", nil},
		"a fault that cannot be": {target.Options{Listen: "127.0.0.1:0", Faults: &faults.Script{Drop: []faults.Drop{{}}}},
			"Faults", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Drive = memoryDrive
			_, err := target.Start(c.o)
			var refused *target.OptionError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, c.option, refused.Option)
			if c.is != nil {
				assert.ErrorIs(t, err, c.is)
			}
		})
	}
}

// TestStartLeavesNothingBehind makes Start fail at each of its steps: the port is free again, the drive can be opened,
// and files that were made for it are gone.
func TestStartLeavesNothingBehind(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for name, c := range map[string]struct {
		change func(o *target.Options, dir string)
		is     error
	}{
		"the second port is taken": {
			func(o *target.Options, _ string) { o.DiscoveryListen = taken.Addr().String() }, syscall.EADDRINUSE,
		},
		"the drive cannot be made": {
			func(o *target.Options, _ string) { o.Drive.Size = 1000 }, csd.ErrGeometry,
		},
		"the list names the drive's own flash": {
			func(o *target.Options, _ string) { o.Namespaces = []target.Namespace{{NSID: 4, Flash: o.Drive.Path}} }, csd.ErrBusy,
		},
		"the second namespace has no flash": {
			func(o *target.Options, dir string) {
				o.Namespaces = []target.Namespace{{NSID: 4, Flash: dir + "/made", Size: 1 << 20}, {NSID: 5, Flash: dir + "/none"}}
			}, csd.ErrNoDrive,
		},
		"a host's name is none": {
			func(o *target.Options, _ string) { o.Hosts = []string{"me"} }, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			port, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			address := port.Addr().String()
			require.NoError(t, port.Close())
			o := target.Options{
				Listen: address, Drive: csd.Options{Path: filepath.Join(dir, "drive"), Create: true, Size: 1 << 20,
					SLMBytes: 1 << 20},
			}
			c.change(&o, dir)
			_, err = target.Start(o)
			require.Error(t, err)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Empty(t, left)
			port, err = net.Listen("tcp", address)
			require.NoError(t, err, "the port is free")
			require.NoError(t, port.Close())
		})
	}
	t.Run("a drive that was there stays", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "drive")
		o := csd.Options{Path: path, Create: true, Size: 1 << 20, SLMBytes: 1 << 20}
		d, err := csd.Open(o)
		require.NoError(t, err)
		require.NoError(t, d.Close())
		o.Create = false
		_, err = target.Start(target.Options{Listen: "127.0.0.1:0", Drive: o,
			Namespaces: []target.Namespace{{NSID: 4, Flash: path + "none"}}})
		require.ErrorIs(t, err, csd.ErrNoDrive)
		d, err = csd.Open(o)
		require.NoError(t, err)
		require.NoError(t, d.Close())
	})
}

// TestSetNamespaces changes namespaces under a host that is connected.
func TestSetNamespaces(t *testing.T) {
	dir := t.TempDir()
	first := target.Namespace{NSID: 4, Flash: filepath.Join(dir, "a"), Size: 1 << 20}
	s := start(t, target.Options{Drive: memoryDrive, Namespaces: []target.Namespace{first}})
	events := make(chan nvme.AsyncEvent, 64)
	h := dial(t, s, tcp.DialOptions{OnEvent: func(e nvme.AsyncEvent) { events <- e }})
	require.Equal(t, []uint32{1, 2, 3, 4}, active(t, h))
	block := make([]byte, 512)
	copy(block, "millrace")
	write := nvme.Write(4, 3, 1, 512, false)
	_, err := h.IO(t.Context(), &write, block)
	require.NoError(t, err)

	moved := target.Namespace{NSID: 9, Flash: first.Flash}
	err = s.SetNamespaces([]target.Namespace{moved, {NSID: 5, Flash: filepath.Join(dir, "none")}})
	require.ErrorIs(t, err, csd.ErrNoDrive)
	require.Equal(t, []uint32{4}, s.Namespaces())
	require.Equal(t, []uint32{1, 2, 3, 4}, active(t, h))

	require.NoError(t, s.SetNamespaces([]target.Namespace{moved,
		{NSID: 5, Flash: filepath.Join(dir, "b"), Size: 1 << 20}}))
	require.Equal(t, nvme.EventNamespaceChanged, <-events)
	require.Equal(t, []uint32{5, 9}, s.Namespaces())
	require.Equal(t, []uint32{1, 2, 3, 5, 9}, active(t, h))
	got := make([]byte, 512)
	read := nvme.Read(9, 3, 1, 512)
	_, err = h.IO(t.Context(), &read, got)
	require.NoError(t, err)
	require.Equal(t, block, got, "the flash kept its data under another identifier")
}

// TestFaults serves a drive with a script; blocks of the script are those of the drive.
func TestFaults(t *testing.T) {
	script, err := faults.Parse([]byte("fail: [{operation: read, lba: 100, times: 1}]"))
	require.NoError(t, err)
	o := target.Options{Drive: memoryDrive, Faults: script}
	o.Drive.LBA = csd.LBA4096
	h := dial(t, start(t, o), tcp.DialOptions{})
	b := make([]byte, 4096)
	for lba, want := range []error{99: nil, 100: nvme.UnrecoveredReadError, 101: nil} {
		if lba < 99 {
			continue
		}
		read := nvme.Read(1, uint64(lba), 1, 4096)
		_, err := h.IO(t.Context(), &read, b)
		require.ErrorIs(t, err, want, lba)
	}
}

// TestClose: Close ends Wait's listener, frees the port and the drive, and can be called again.
func TestClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	o := csd.Options{Path: path, Create: true, Size: 1 << 20, SLMBytes: 1 << 20}
	s := start(t, target.Options{Name: "a test", Drive: o})
	o.Create = false
	_, err := csd.Open(o)
	var busy *csd.BusyError
	require.ErrorAs(t, err, &busy)
	require.NotNil(t, busy.Owner)
	assert.Equal(t, "a test", busy.Owner.Name)
	assert.Equal(t, []string{s.URI()}, busy.Owner.URLs)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Wait(t.Context()), tcp.ErrTargetClosed)
	require.ErrorIs(t, s.SetNamespaces(nil), tcp.ErrTargetClosed)
	d, err := csd.Open(o)
	require.NoError(t, err)
	_, err = tcp.Dial(t.Context(), tcp.DialOptions{Address: s.Address(), Subsystem: d.Subsystem().NQN(), GiveUp: -1})
	require.Error(t, err)
	require.NoError(t, errors.Join(d.Close()))
}
