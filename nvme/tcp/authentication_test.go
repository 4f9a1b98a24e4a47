package tcp

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/auth"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
)

func newKey(t *testing.T, h auth.Hash) auth.Key {
	t.Helper()
	k, err := auth.GenerateKey(h)
	require.NoError(t, err)
	return k
}

// keys are a host's and a drive's, and options of a target that knows both.
func keys(t *testing.T) (HostKeys, TargetOptions) {
	t.Helper()
	k := HostKeys{Host: newKey(t, auth.SHA256), Controller: newKey(t, auth.SHA512)}
	return k, TargetOptions{Auth: &AuthOptions{Keys: map[string]HostKeys{hostNQN: k},
		Groups: []auth.Group{auth.NullGroup, auth.FFDHE2048}}}
}

func TestAuthentication(t *testing.T) {
	noLeaks(t)
	k, o := keys(t)
	for _, hash := range []auth.Hash{auth.SHA256, auth.SHA384, auth.SHA512} {
		for _, group := range []auth.Group{auth.NullGroup, auth.FFDHE2048, auth.FFDHE8192} {
			for _, both := range []bool{false, true} {
				if group == auth.FFDHE8192 && hash != auth.SHA512 { // the longest messages; others are tested in package auth
					continue
				}
				t.Run(fmt.Sprintf("%v %v both=%t", hash, group, both), func(t *testing.T) {
					o.Auth.Hashes, o.Auth.Groups = []auth.Hash{hash}, []auth.Group{group}
					s := serve(t, o)
					d := DialOptions{Key: k.Host, Queues: 2, HeaderDigest: true, DataDigest: true, NoFlowControl: both}
					if both {
						d.ControllerKey = k.Controller
					}
					h := s.dial(d)
					ctx := context.Background()
					for range 4 { // both queues
						want := pattern(8704, 1)
						require.NoError(t, write(ctx, h, 5, want))
						got := make([]byte, len(want))
						require.NoError(t, read(ctx, h, 5, got))
						require.Equal(t, want, got)
					}
				})
			}
		}
	}
}

func TestAuthenticationFails(t *testing.T) {
	noLeaks(t)
	k, o := keys(t)
	other := newKey(t, auth.SHA256)
	for _, c := range []struct {
		name   string
		target func(o *TargetOptions)
		dial   DialOptions
		is     error
		says   string
	}{
		{"wrong key", nil, DialOptions{Key: other}, auth.NotAuthenticated, "the peer reports"},
		{"no key", nil, DialOptions{}, ErrAuthentication, "give the host's key"},
		{"a host without a key on the drive", nil, DialOptions{Key: other, HostNQN: hostNQN + "2"}, fabrics.InvalidHost,
			"does not serve this host"},
		{"the drive has another key", nil, DialOptions{Key: k.Host, ControllerKey: other}, auth.NotAuthenticated,
			"controller key"},
		{"the drive has no key", func(o *TargetOptions) {
			o.Auth = &AuthOptions{Keys: map[string]HostKeys{hostNQN: {Host: k.Host}}}
		}, DialOptions{Key: k.Host, ControllerKey: k.Controller}, auth.NotAuthenticated, "the peer reports"},
		{"the drive does not authenticate", func(o *TargetOptions) { o.Auth = nil },
			DialOptions{Key: k.Host, ControllerKey: k.Controller},
			ErrAuthentication, "the drive does not authenticate"},
		{"nothing in common", nil, DialOptions{Key: k.Host, AuthGroups: []auth.Group{auth.FFDHE3072}}, auth.GroupUnusable,
			"group"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := o
			if c.target != nil {
				c.target(&o)
			}
			s := serve(t, o)
			d := c.dial
			d.Address, d.Subsystem = s.address, testNQN
			if d.HostNQN == "" {
				d.HostNQN = hostNQN
			}
			_, err := Dial(context.Background(), d)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
			require.Eventually(t, func() bool { return s.target.countConnections() == 0 && s.sub.Associations() == 0 },
				time.Minute, time.Millisecond)
			if s.target.opt.Auth != nil { // nothing else notices
				require.NoError(t, read(context.Background(), s.dial(DialOptions{Key: k.Host}), 0, make([]byte, 512)))
			}
		})
	}
}

// cutAfterFailure is a connection that ends behind the data of an AUTH_Failure1, or before them.
type cutAfterFailure struct {
	net.Conn
	left   []byte
	over   bool
	before bool
}

func (c *cutAfterFailure) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		if c.over {
			return 0, io.EOF
		}
		c.left = make([]byte, pdu.CommonSize)
		if _, err := io.ReadFull(c.Conn, c.left); err != nil {
			return 0, err
		}
		c.left = append(c.left, make([]byte, binary.LittleEndian.Uint32(c.left[4:])-pdu.CommonSize)...)
		if _, err := io.ReadFull(c.Conn, c.left[pdu.CommonSize:]); err != nil {
			return 0, err
		}
		c.over = c.left[0] == byte(pdu.TypeC2HData) && bytes.HasPrefix(c.left[pdu.DataSize:], []byte{0x00, 0xf1})
		if c.over && c.before {
			return 0, io.EOF
		}
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

// Some targets close the connection before the command that says why is complete: the reason counts.
func TestAuthenticationFailsAndTheConnectionEnds(t *testing.T) {
	noLeaks(t)
	_, o := keys(t)
	s := serve(t, o)
	_, err := Dial(context.Background(), DialOptions{
		Address: s.address, Subsystem: testNQN, HostNQN: hostNQN, Key: newKey(t, auth.SHA256),
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, address)
			return &cutAfterFailure{Conn: nc}, err
		},
	})
	require.ErrorIs(t, err, ErrAuthentication)
	require.ErrorIs(t, err, auth.NotAuthenticated)
}

func TestAuthenticationOptions(t *testing.T) {
	k, _ := keys(t)
	for name, o := range map[string]*AuthOptions{
		"not a name":       {Keys: map[string]HostKeys{"host": k}},
		"no host key":      {Keys: map[string]HostKeys{hostNQN: {Controller: k.Controller}}},
		"one key for both": {Keys: map[string]HostKeys{AnyHost: {Host: k.Host, Controller: k.Host}}},
		"unknown hash":     {Keys: map[string]HostKeys{AnyHost: k}, Hashes: []auth.Hash{9}},
	} {
		_, err := NewTarget(TargetOptions{Auth: o})
		require.Error(t, err, name)
	}
	for name, d := range map[string]DialOptions{
		"controller key alone": {ControllerKey: k.Controller},
		"unknown group":        {Key: k.Host, AuthGroups: []auth.Group{77}},
	} {
		d.Address, d.Subsystem = "127.0.0.1:1", testNQN
		_, err := Dial(context.Background(), d)
		require.ErrorIs(t, err, auth.ErrOptions, name)
	}
}

func TestAnyHostsKey(t *testing.T) {
	k, _ := keys(t)
	own := HostKeys{Host: newKey(t, auth.NoHash)}
	s := serve(t, TargetOptions{Auth: &AuthOptions{Keys: map[string]HostKeys{AnyHost: k, hostNQN: own},
		Groups: []auth.Group{auth.NullGroup}}})
	s.dial(DialOptions{HostNQN: hostNQN + "2", Key: k.Host, ControllerKey: k.Controller})
	s.dial(DialOptions{Key: own.Host})
	_, err := Dial(context.Background(), DialOptions{Address: s.address, Subsystem: testNQN, HostNQN: hostNQN,
		Key: k.Host})
	require.ErrorIs(t, err, auth.NotAuthenticated, "a host with a key of its own has no other")
}

// A discovery subsystem tells any host where drives are, as kernels expect.
func TestDiscoveryNeedsNoAuthentication(t *testing.T) {
	_, o := keys(t)
	s := serve(t, o)
	require.NoError(t, s.target.Add(controller.NewDiscovery(controller.DiscoveryOptions{})))
	h, err := Dial(context.Background(), DialOptions{Address: s.address, Subsystem: fabrics.DiscoveryNQN,
		HostNQN: hostNQN + "3"})
	require.NoError(t, err)
	require.NoError(t, h.Close())
}

// A Connect that was refused leaves no demand to authenticate behind on its connection.
func TestDiscoveryAfterARefusedQueue(t *testing.T) {
	_, o := keys(t)
	s := serve(t, o)
	require.NoError(t, s.target.Add(controller.NewDiscovery(controller.DiscoveryOptions{})))
	admin := s.dialRaw()
	admin.initialise(pdu.ICReq{})
	cpl := admin.connect(fabrics.Connect{Size: 31}, fabrics.ConnectData{ControllerID: fabrics.AnyController})
	require.True(t, cpl.Status().OK(), cpl.String())
	r := s.dialRaw()
	r.initialise(pdu.ICReq{})
	cpl = r.connect(fabrics.Connect{Queue: 1, Size: 7}, fabrics.ConnectData{ControllerID: uint16(cpl.DW0())})
	require.ErrorIs(t, cpl.Status(), nvme.CommandSequenceError, "the controller is not enabled")
	cpl = r.connect(fabrics.Connect{Size: 31}, fabrics.ConnectData{ControllerID: fabrics.AnyController,
		SubsystemNQN: fabrics.DiscoveryNQN})
	require.True(t, cpl.Status().OK(), cpl.String())
	require.Zero(t, cpl.DW0()&fabrics.WantsAuthentication)
	cpl, _ = r.do(fabrics.PropertyGet(controller.PropertyCAP, 8), nil)
	require.True(t, cpl.Status().OK(), cpl.String())
}

// bare is an admin queue that has connected and done nothing else.
func bare(t *testing.T, s *served, change ...func(*DialOptions)) (*link, *queue) {
	t.Helper()
	h := &Host{opt: DialOptions{Address: s.address, Subsystem: testNQN, HostNQN: hostNQN}}
	for _, f := range change {
		f(&h.opt)
	}
	require.NoError(t, h.opt.setDefaults())
	l := newLink(h)
	t.Cleanup(func() {
		l.endWithCause(nvme.ErrClosed)
		l.abandon()
		<-l.dead
	})
	q, dw0, err := l.connectQueue(context.Background(), 0, controller.AdminDepth, inCapsule)
	require.NoError(t, err)
	require.Equal(t, uint32(fabrics.WantsAuthentication), dw0&^0xffff)
	return l, q
}

func do(q *queue, cmd nvme.Command, data []byte) error {
	_, err := q.executeCommand(context.Background(), q.free, &cmd, data, 0)
	return err
}

// Before it has authenticated a host gets nothing out of a queue.
func TestCommandsBeforeAuthentication(t *testing.T) {
	noLeaks(t)
	k, o := keys(t)
	s := serve(t, o)
	l, q := bare(t, s)
	refused := fabrics.AuthRequired | nvme.StatusDNR
	for name, cmd := range map[string]nvme.Command{
		"identify":     nvme.Identify(nvme.CNSController, 0, 0),
		"property get": fabrics.PropertyGet(controller.PropertyCAP, 8),
		"property set": fabrics.PropertySet(controller.PropertyCC, 4, controller.DefaultCC),
		"disconnect":   disconnect(),
		"keep alive":   nvme.KeepAlive(),
		"event":        nvme.AsyncEventRequest(),
		"unknown":      nvme.New(0xc7, 0),
	} {
		err := do(q, cmd, make([]byte, cmd.DataLength()))
		assert.Equal(t, refused, err, name)
	}

	// An I/O queue of the association, which is not enabled, does not come to be.
	l.h.opt.Key = k.Host
	_, _, err := l.connectQueue(context.Background(), 1, 8, inCapsule)
	require.Error(t, err)

	// And then it authenticates, on the same connection.
	require.NoError(t, q.authenticate(context.Background(), fabrics.WantsAuthentication))
	require.NoError(t, do(q, fabrics.PropertyGet(controller.PropertyCAP, 8), nil))
	require.NoError(t, q.authenticate(context.Background(), fabrics.WantsAuthentication), "again")
	require.NoError(t, do(q, fabrics.PropertyGet(controller.PropertyCAP, 8), nil))

	// An I/O queue authenticates for itself.
	require.NoError(t, do(q, fabrics.PropertySet(controller.PropertyCC, 4, controller.DefaultCC), nil))
	io, dw0, err := l.connectQueue(context.Background(), 1, 8, inCapsule)
	require.NoError(t, err)
	require.NotZero(t, dw0&fabrics.WantsAuthentication)
	assert.Equal(t, refused, do(io, nvme.Read(1, 0, 1, 512), make([]byte, 512)))
	require.NoError(t, io.authenticate(context.Background(), dw0))
	require.NoError(t, do(io, nvme.Read(1, 0, 1, 512), make([]byte, 512)))
}

func TestMalformedAuthentication(t *testing.T) {
	noLeaks(t)
	k, o := keys(t)
	s := serve(t, o)
	l, q := bare(t, s)
	change := func(e nvme.Command, f func(e *nvme.Command)) nvme.Command {
		f(&e)
		return e
	}
	for name, c := range map[string]struct {
		cmd  nvme.Command
		data []byte
		want nvme.Status
	}{
		"another protocol": {change(fabrics.AuthSend(8), func(e *nvme.Command) { e[43] = 0 }), make([]byte, 8),
			nvme.InvalidField},
		"no length": {fabrics.AuthSend(0), nil, nvme.InvalidField},
		"lengths that differ": {change(fabrics.AuthSend(8), func(e *nvme.Command) { e.SetData(16) }), make([]byte, 16),
			nvme.InvalidField},
		"receive nothing": {fabrics.AuthReceive(0), nil, nvme.InvalidField},
		"receive much":    {fabrics.AuthReceive(1 << 20), make([]byte, 1<<20), nvme.InvalidField},
		"receive 4 GiB": {change(fabrics.AuthReceive(8), func(e *nvme.Command) { e[47] = 0xff }), make([]byte, 8),
			nvme.InvalidField},
		"too little to receive": {fabrics.AuthReceive(7), make([]byte, 7), nvme.InvalidField},
		"not in the capsule":    {fabrics.AuthSend(9000), make([]byte, 9000), nvme.InvalidSGLType},
	} {
		require.ErrorIs(t, do(q, c.cmd, c.data), c.want, name)
	}
	l.h.opt.Key = k.Host
	require.NoError(t, q.authenticate(context.Background(), fabrics.WantsAuthentication), "the queue is none the worse")

	// Garbage is answered by a failure, and the connection ends.
	_, q = bare(t, s)
	require.NoError(t, do(q, fabrics.AuthSend(5), []byte("hello")))
	in := bytes.Repeat([]byte{0xee}, auth.MaxMessage)
	require.NoError(t, do(q, fabrics.AuthReceive(auth.MaxMessage), in))
	f, err := auth.ParseFailure(in)
	require.NoError(t, err)
	assert.Equal(t, auth.IncorrectPayload, f.Reason)
	assert.Zero(t, bytes.Count(in[8:], []byte{0xee}), "the rest is zeros")
	require.Error(t, do(q, fabrics.AuthReceive(auth.MaxMessage), in))
}

func TestAuthenticationTakesTooLong(t *testing.T) {
	noLeaks(t)
	_, o := keys(t)
	o.Handshake = 50 * time.Millisecond
	s := serve(t, o)
	l, _ := bare(t, s)
	<-l.over
	require.Eventually(t, func() bool { return s.sub.Associations() == 0 }, time.Minute, time.Millisecond)
}

// A connection that is lost authenticates when it is made again; a host whose key was taken away learns that at once.
func TestAuthenticationAfterReconnect(t *testing.T) {
	noLeaks(t)
	k, o := keys(t)
	s := serve(t, o)
	h := s.dial(DialOptions{Key: k.Host, ControllerKey: k.Controller, FirstDelay: time.Millisecond})
	ctx := context.Background()
	b := make([]byte, 512)
	require.NoError(t, read(ctx, h, 0, b))
	s.stop()
	s.start(o, s.address)
	require.NoError(t, read(ctx, h, 0, b))
	assert.NotZero(t, h.Stats().Reconnects)
	s.stop()
	o.Auth = &AuthOptions{Keys: map[string]HostKeys{hostNQN: {Host: newKey(t, auth.SHA256), Controller: k.Controller}}}
	s.start(o, s.address)
	require.ErrorIs(t, read(ctx, h, 0, b), ErrAuthentication)
}

// While a message of a host that authenticates again is worked on, or waits for its turn, the queue goes on; a second
// message has to wait.
func TestAuthenticationDelaysNobody(t *testing.T) {
	noLeaks(t)
	k, o := keys(t)
	o.Auth.Exchanges = 1
	s := serve(t, o)
	l, q := bare(t, s)
	l.h.opt.Key = k.Host
	require.NoError(t, q.authenticate(context.Background(), fabrics.WantsAuthentication))
	require.NoError(t, do(q, fabrics.PropertySet(controller.PropertyCC, 4, controller.DefaultCC), nil))

	s.target.exchanges <- struct{}{} // somebody else's takes long
	again := make(chan error, 1)
	go func() { again <- q.authenticate(context.Background(), fabrics.WantsAuthentication) }()
	require.Eventually(t, func() bool {
		for _, c := range s.target.allConnections() {
			if c.authBusy.Load() {
				return true
			}
		}
		return false
	}, time.Minute, time.Millisecond)
	for range 10 {
		require.NoError(t, do(q, nvme.KeepAlive(), nil))
		require.NoError(t, do(q, nvme.Identify(nvme.CNSController, 0, 0), make([]byte, nvme.IdentifySize)))
	}
	require.ErrorIs(t, do(q, fabrics.AuthReceive(auth.MaxMessage), make([]byte, auth.MaxMessage)),
		nvme.CommandSequenceError)
	_, _ = bare(t, s) // others connect
	select {
	case err := <-again:
		t.Fatal("it did not wait for its turn: ", err)
	default:
	}
	<-s.target.exchanges
	require.NoError(t, <-again)
	require.NoError(t, do(q, nvme.KeepAlive(), nil))

	// A host that goes away while it waits leaves nothing behind.
	s.target.exchanges <- struct{}{}
	gone, q2 := bare(t, s)
	gone.h.opt.Key = k.Host
	go func() { again <- q2.authenticate(context.Background(), fabrics.WantsAuthentication) }()
	require.Eventually(t, func() bool {
		busy := 0
		for _, c := range s.target.allConnections() {
			if c.authBusy.Load() {
				busy++
			}
		}
		return busy == 1
	}, time.Minute, time.Millisecond)
	gone.endWithCause(nvme.ErrClosed)
	require.Error(t, <-again)
	require.Eventually(t, func() bool { return s.sub.Associations() == 2 }, time.Minute, time.Millisecond)
	<-s.target.exchanges
}

// Many hosts at once, one message at a time.
func TestManyAuthenticate(t *testing.T) {
	noLeaks(t)
	k, o := keys(t)
	o.Auth.Exchanges, o.Auth.Groups = 1, []auth.Group{auth.FFDHE2048}
	s := serve(t, o)
	var wg sync.WaitGroup
	for range 12 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			h, err := Dial(context.Background(), DialOptions{Address: s.address, Subsystem: testNQN, HostNQN: hostNQN,
				Key: k.Host, ControllerKey: k.Controller, ConnectTimeout: time.Minute})
			if assert.NoError(t, err) {
				assert.NoError(t, read(context.Background(), h, 0, make([]byte, 512)))
				assert.NoError(t, h.Close())
			}
		}()
	}
	wg.Wait()
	require.Empty(t, s.target.exchanges)
}

// A host that computes for longer than its keep alive timeout is waited for, on the admin queue and on another; one
// that has authenticated is not.
func TestAuthenticationIsSlow(t *testing.T) {
	t.Parallel()
	k, o := keys(t)
	o.Handshake = time.Minute
	s := serve(t, o)
	// which the drive rounds up to 2 s
	l, q := bare(t, s, func(d *DialOptions) { d.Key, d.KeepAlive = k.Host, 1100*time.Millisecond })
	long := func() {
		select {
		case <-l.over:
			require.NoError(t, l.endCause())
		case <-time.After(3 * time.Second):
		}
	}
	long()
	require.NoError(t, q.authenticate(context.Background(), fabrics.WantsAuthentication))
	require.NoError(t, do(q, fabrics.PropertySet(controller.PropertyCC, 4, controller.DefaultCC), nil))
	io, dw0, err := l.connectQueue(context.Background(), 1, 8, inCapsule)
	require.NoError(t, err)
	long()
	require.NoError(t, io.authenticate(context.Background(), dw0))
	require.NoError(t, do(io, nvme.Read(1, 0, 1, 512), make([]byte, 512)))
	<-l.over
	require.Eventually(t, func() bool { return s.sub.Associations() == 0 }, time.Minute, time.Millisecond)
}
