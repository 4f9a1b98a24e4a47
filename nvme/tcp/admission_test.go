package tcp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/lograte"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/auth"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// lines is a log that a test reads.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// with returns the lines that hold a text.
func (l *lines) with(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for line := range strings.Lines(l.b.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// elsewhere dials from another address of this machine, as another host would.
func elsewhere(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	return d.DialContext(ctx, network, address)
}

// open reports whether the connection is open. The host waits for no answer on it.
func (r *rawHost) open() bool {
	r.t.Helper()
	require.NoError(r.t, r.nc.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	_, _, err := r.rx.NextPDU()
	require.Error(r.t, err)
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// TestFloodOfConnectionsThatDoNotConnect: connections that send nothing, and connections that send nothing after ICReq,
// are closed to make room, the oldest first, and hosts can connect.
func TestFloodOfConnectionsThatDoNotConnect(t *testing.T) {
	for name, begin := range map[string]func(r *rawHost){
		"no ICReq":   func(*rawHost) {},
		"no Connect": func(r *rawHost) { r.initialise(pdu.ICReq{}) },
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			var log lines
			s := serve(t, TargetOptions{MaxConnections: 4, MaxOpening: 8, Handshake: time.Hour, Logger: log.logger()})
			first := s.dial(DialOptions{Queues: 1})
			var flood []*rawHost
			for range 64 {
				r := s.dialRaw()
				begin(r)
				flood = append(flood, r)
			}
			for _, r := range flood[:64-8] {
				r.ended()
			}
			for _, r := range flood[64-8:] {
				assert.True(t, r.open(), "there is room for eight")
			}
			h := s.dial(DialOptions{Queues: 1}) // of the same address
			require.NoError(t, read(t.Context(), h, 0, make([]byte, 512)))
			require.NoError(t, read(t.Context(), first, 0, make([]byte, 512)))
			assert.Zero(t, first.Stats().Reconnects)
			cut := log.with("made room for a newer connection")
			require.NotEmpty(t, cut)
			assert.Contains(t, cut[0], "from=127.0.0.1:")
			assert.LessOrEqual(t, len(cut), 2*lograte.DefaultBurst, "a flood does not fill the log")
		})
	}
}

// TestHostConnectsDuringAFlood: while two goroutines open connections without end from one address and hold more than
// the target takes, a host of another address connects, 20 times of 20.
func TestHostConnectsDuringAFlood(t *testing.T) {
	noLeaks(t)
	k, o := keys(t)
	o.MaxConnections, o.MaxOpening, o.Unauthenticated = 64, 8, 4
	s := serve(t, o)
	ctx, stop := context.WithCancel(t.Context())
	var flood, full sync.WaitGroup
	defer flood.Wait()
	defer stop()
	for _, connects := range []bool{false, true} {
		full.Add(1)
		flood.Go(func() {
			holdsMany := sync.OnceFunc(full.Done)
			defer holdsMany()
			var held []net.Conn
			defer func() {
				for _, nc := range held {
					_ = nc.Close()
				}
			}()
			for ctx.Err() == nil {
				// Without a pause the flood takes every processor, and the test waits for the scheduler.
				time.Sleep(200 * time.Microsecond)
				nc, err := net.Dial("tcp", s.address)
				if err != nil {
					continue
				}
				if held = append(held, nc); len(held) > 100 {
					holdsMany()
					_ = held[0].Close()
					held = held[1:]
				}
				if connects {
					_ = floodConnect(nc)
				}
			}
		})
	}
	full.Wait()
	for range 20 {
		h, err := Dial(ctx, DialOptions{Address: s.address, Subsystem: testNQN, HostNQN: hostNQN, Key: k.Host, Queues: 2,
			ConnectTimeout: time.Minute, DialContext: elsewhere})
		require.NoError(t, err)
		require.NoError(t, read(ctx, h, 0, make([]byte, 512)))
		require.NoError(t, h.Close())
	}
}

// floodConnect says Connect on a connection and reads no answer.
func floodConnect(nc net.Conn) error {
	r := rawHost{nc: nc, tx: pdu.Rules{}}
	req := fabrics.Connect{Size: 31}
	cmd := req.Command()
	data := (&fabrics.ConnectData{ControllerID: fabrics.AnyController, SubsystemNQN: testNQN, HostNQN: hostNQN}).Marshal()
	cmd.SetSGL(nvme.SGL{Length: uint32(len(data)), Type: nvme.SGLDataBlockOffset})
	out := (&pdu.ICReq{}).Put(new([pdu.ICSize]byte))
	out = append(out, r.bytes(pdu.TypeCapsuleCmd, 0, data, func(b []byte) { pdu.PutCommand(b, &cmd) })...)
	_, err := nc.Write(out)
	return err
}

// TestHostsWithoutAKeyTakeNoPlace: 80 Connects without a key leave every place to hosts that have one.
func TestHostsWithoutAKeyTakeNoPlace(t *testing.T) {
	noLeaks(t)
	k, o := keys(t)
	o.Unauthenticated, o.Handshake = 8, time.Hour
	o.MaxConnections = 6
	var log lines
	o.Logger = log.logger()
	s := serve(t, o)
	first := s.dial(DialOptions{Key: k.Host, Queues: 2})
	var flood []*rawHost
	for range 80 {
		r := s.dialRaw()
		r.initialise(pdu.ICReq{})
		cpl := r.connect(fabrics.Connect{Size: 31}, fabrics.ConnectData{ControllerID: fabrics.AnyController})
		require.True(t, cpl.Status().OK(), cpl.String())
		require.NotZero(t, cpl.DW0()>>16, "it must authenticate")
		flood = append(flood, r)
	}
	for _, r := range flood[:80-8] {
		r.ended()
	}
	for _, r := range flood[80-8:] {
		cpl, _ := r.do(fabrics.PropertyGet(controller.PropertyCSTS, 4), nil)
		require.Equal(t, fabrics.AuthRequired, cpl.Status().Code(), "the newest are still there")
	}
	second := s.dial(DialOptions{Key: k.Host, Queues: 2})
	for _, h := range []*Host{first, second} {
		require.NoError(t, read(t.Context(), h, 0, make([]byte, 512)))
		assert.Zero(t, h.Stats().Reconnects)
	}
	assert.LessOrEqual(t, len(log.with("host connected")), 4*lograte.DefaultBurst)

	// When hosts with a key have taken every place, the next host with a key is refused, and the log names the reason.
	_, err := Dial(t.Context(), DialOptions{Address: s.address, Subsystem: testNQN, HostNQN: hostNQN, Key: k.Host,
		Queues: 1})
	require.Error(t, err)
	require.NotEmpty(t, log.with("the target has as many connections as it takes"))
}

// TestAssociationsOfAuthenticatedHostsAreBounded: when the last association is taken, a host with a key is refused as
// busy, and the log names MaxAssociations. A connection that came earlier and is still open cannot be admitted.
func TestAssociationsOfAuthenticatedHostsAreBounded(t *testing.T) {
	k, o := keys(t)
	var log lines
	o.Logger = log.logger()
	s := &served{t: t, flash: newFlash(1 << 20), ended: make(chan error, 1)}
	var err error
	s.sub, err = controller.New(controller.Options{Flash: s.flash, NQN: testNQN, Serial: "S1", MaxAssociations: 1})
	require.NoError(t, err)
	s.start(o, "127.0.0.1:0")
	t.Cleanup(func() { s.stop() })
	late := s.dialRaw() // sends Connect before the place is taken
	late.initialise(pdu.ICReq{})
	cpl := late.connect(fabrics.Connect{Size: 31}, fabrics.ConnectData{ControllerID: fabrics.AnyController})
	require.True(t, cpl.Status().OK(), cpl.String())
	s.dial(DialOptions{Key: k.Host, Queues: 1})
	_, err = Dial(t.Context(), DialOptions{Address: s.address, Subsystem: testNQN, HostNQN: hostNQN, Key: k.Host,
		Queues: 1})
	require.ErrorContains(t, err, "busy")
	require.NotEmpty(t, log.with("raise MaxAssociations"))
	all := s.target.allConnections()
	i := slices.IndexFunc(all, func(c *connection) bool {
		return c.nc.RemoteAddr().String() == late.nc.LocalAddr().String()
	})
	require.GreaterOrEqual(t, i, 0, "the earlier connection is open")
	require.ErrorIs(t, all[i].admitHost(), controller.ErrBusy)
}

// TestDiscoveryHasItsShare: of five discovery connections, which need no key, the newest two stay, and a drive's host
// finds a place.
func TestDiscoveryHasItsShare(t *testing.T) {
	k, o := keys(t)
	o.MaxDiscovery, o.MaxConnections = 2, 2
	s := serve(t, o)
	require.NoError(t, s.target.Add(controller.NewDiscovery(controller.DiscoveryOptions{})))
	var all []*rawHost
	for range 5 {
		r := s.dialRaw()
		r.initialise(pdu.ICReq{})
		cpl := r.connect(fabrics.Connect{Size: 31}, fabrics.ConnectData{ControllerID: fabrics.AnyController,
			SubsystemNQN: fabrics.DiscoveryNQN})
		require.True(t, cpl.Status().OK(), cpl.String())
		all = append(all, r)
	}
	for _, r := range all[:3] {
		r.ended()
	}
	for _, r := range all[3:] {
		cpl, _ := r.do(fabrics.PropertyGet(controller.PropertyCSTS, 4), nil)
		require.True(t, cpl.Status().OK(), cpl.String())
	}
	require.NoError(t, read(t.Context(), s.dial(DialOptions{Key: k.Host, Queues: 1}), 0, make([]byte, 512)))
}

// TestRefusedConnectIsLogged: the log names the host, the subsystem, and the reason of the refusal.
func TestRefusedConnectIsLogged(t *testing.T) {
	const stranger = "nqn.2014-08.org.nvmexpress:uuid:stranger"
	admin := fabrics.Connect{Size: 31}
	whole := fabrics.ConnectData{ControllerID: fabrics.AnyController, SubsystemNQN: testNQN, HostNQN: hostNQN,
		HostID: [16]byte{0xab, 0xcd}}
	for name, c := range map[string]struct {
		connect fabrics.Connect
		data    func(d *fabrics.ConnectData)
		host    string
		says    string
	}{
		"unknown subsystem": {admin, func(d *fabrics.ConnectData) { d.SubsystemNQN = testNQN + "x" }, hostNQN,
			"there is no such subsystem"},
		"not on the list": {admin, func(d *fabrics.ConnectData) { d.HostNQN = stranger }, stranger,
			"not on the allow-list"},
		"without a key": {admin, func(d *fabrics.ConnectData) { d.HostNQN = hostNQN + "2" }, hostNQN + "2",
			"there is no key of the host"},
		"no NQN": {admin, func(d *fabrics.ConnectData) { d.HostNQN = "no\nlevel=INFO msg=forged" }, "no\\nlevel",
			"host NQN"},
		"named controller": {admin, func(d *fabrics.ConnectData) { d.ControllerID = 7 }, hostNQN,
			"controller 7 is asked for by name"},
		"admin queue too big": {fabrics.Connect{Size: 100}, nil, hostNQN, "an admin queue of 101 entries"},
		"queue of one":        {fabrics.Connect{}, nil, hostNQN, "a queue of one entry"},
		"format":              {fabrics.Connect{Size: 31, Format: 1}, nil, hostNQN, "record format 1"},
		"I/O queue of nobody": {fabrics.Connect{Size: 31, Queue: 1}, nil, hostNQN,
			"there is no association with controller 65535"},
	} {
		t.Run(name, func(t *testing.T) {
			_, o := keys(t)
			o.Hosts = []string{hostNQN, hostNQN + "2"}
			var log lines
			o.Logger = log.logger()
			s := serve(t, o)
			r := s.dialRaw()
			r.initialise(pdu.ICReq{})
			d := whole
			if c.data != nil {
				c.data(&d)
			}
			cpl := r.connect(c.connect, d)
			require.False(t, cpl.Status().OK())
			got := log.with("connect refused")
			require.Len(t, got, 1)
			assert.Contains(t, got[0], c.says)
			assert.Contains(t, got[0], c.host)
			assert.Contains(t, got[0], "from="+r.nc.LocalAddr().String())
			assert.Contains(t, got[0], "abcd0000-0000-0000-0000-000000000000")
			assert.Contains(t, got[0], " error=")
		})
	}
	t.Run("a flood of them", func(t *testing.T) {
		var log lines
		s := serve(t, TargetOptions{Logger: log.logger(), Hosts: []string{hostNQN}})
		r := s.dialRaw()
		r.initialise(pdu.ICReq{})
		for range 500 {
			cpl := r.connect(admin, fabrics.ConnectData{ControllerID: fabrics.AnyController, HostNQN: stranger})
			require.False(t, cpl.Status().OK())
		}
		assert.Less(t, len(log.with("connect refused")), 100)
	})
}

// TestWrongKeyIsLogged: the log names a host that fails to authenticate, and has an error.
func TestWrongKeyIsLogged(t *testing.T) {
	_, o := keys(t)
	var log lines
	o.Logger = log.logger()
	s := serve(t, o)
	_, err := Dial(t.Context(), DialOptions{Address: s.address, Subsystem: testNQN, HostNQN: hostNQN,
		Key: newKey(t, auth.SHA256)})
	require.ErrorIs(t, err, auth.NotAuthenticated)
	got := log.with("authentication failed")
	require.NotEmpty(t, got)
	assert.Contains(t, got[0], "host="+hostNQN)
	assert.Contains(t, got[0], " error=")
}
