package controller

import (
	"context"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/statediagram"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// Bounds of waiting for something to happen in another goroutine; nothing is timed.
const (
	waitLong  = 20 * time.Second
	waitShort = time.Millisecond
)

func csts(c *Controller) uint64 {
	v, _ := c.PropertyGet(PropertyCSTS, 4)
	return v
}

// TestTransitionsAreDocumented holds the table against the picture in docs/architecture.md.
func TestTransitionsAreDocumented(t *testing.T) {
	statediagram.Picture[state, event]{
		File: "../../docs/architecture.md", Name: "controller", Table: transitions, Start: []state{stateDisabled},
	}.Document(t)
	for s := stateDisabled; s <= stateClosed; s++ {
		assert.Contains(t, transitions, s)
		if s != stateClosed {
			next, ok := transitions.Next(s, eventClose)
			assert.True(t, ok, "%s can be closed", s)
			assert.Equal(t, stateClosed, next)
		}
	}
}

// TestEnableAndShutdownInTheOrderOfLinux sets and reads the properties in the order in which Linux 6.1 does when it
// connects and when it shuts down. The order was read in its source; package nvme/tcp/kerneltest boots a kernel.
func TestEnableAndShutdownInTheOrderOfLinux(t *testing.T) {
	d := newDrive(t)
	c, err := d.Connect(HostID{}, 5000)
	require.NoError(t, err)
	capability, st := c.PropertyGet(PropertyCAP, 8)
	require.True(t, st.OK())
	assert.Equal(t, uint64(MaxDepth-1), capability&0xffff)
	assert.NotZero(t, capability&(1<<16), "contiguous queues are required")
	assert.NotZero(t, capability>>24&0xff, "timeout")
	assert.NotZero(t, capability&(1<<37))
	assert.NotZero(t, capability&(1<<43))
	assert.Zero(t, capability>>48&0xf, "pages of 4 KiB")
	assert.Zero(t, capability>>59&3, "CRTO is not implemented")
	require.True(t, c.PropertySet(PropertyCC, 4, 0x460060).OK())
	assert.Zero(t, csts(c))
	cmd := nvme.KeepAlive()
	_, st = c.Parse(0, &cmd)
	assert.ErrorIs(t, st, nvme.CommandSequenceError, "no command before it is ready")
	assert.ErrorIs(t, c.OpenQueue(1, 32), nvme.CommandSequenceError)
	require.True(t, c.PropertySet(PropertyCC, 4, 0x460061).OK())
	assert.Equal(t, uint64(1), csts(c))
	v, _ := c.PropertyGet(PropertyCC, 4)
	assert.Equal(t, uint64(0x460061), v)
	v, _ = c.PropertyGet(PropertyVS, 4)
	assert.Equal(t, uint64(0x20000), v)
	_, st = c.Parse(0, &cmd)
	assert.True(t, st.OK())
	require.True(t, c.OpenQueue(1, 128).OK())
	assert.ErrorIs(t, c.OpenQueue(1, 128), nvme.CommandSequenceError, "it is open")
	before := d.flash.synced()
	require.True(t, c.PropertySet(PropertyCC, 4, 0x464061).OK())
	until(t, func() bool { return csts(c) == 9 })
	assert.Equal(t, before+1, d.flash.synced())
	_, st = c.Parse(0, &cmd)
	assert.ErrorIs(t, st, nvme.CommandSequenceError)
	require.NoError(t, c.Close())
	assert.Zero(t, d.Associations())
}

// gatedFlash holds every Sync until its release.
type gatedFlash struct {
	Flash
	syncs chan chan error
}

func (f gatedFlash) Sync() error {
	release := make(chan error)
	f.syncs <- release
	return <-release
}

// TestAShutdownBeforeAResetIsOver: when its flush ends, that neither completes a later shutdown nor takes queues.
func TestAShutdownBeforeAResetIsOver(t *testing.T) {
	syncs := make(chan chan error)
	d := newDrive(t, func(o *Options) { o.Flash = gatedFlash{o.Flash, syncs} })
	c := d.enabled()
	const shutdown = DefaultCC | 1<<14
	require.True(t, c.PropertySet(PropertyCC, 4, shutdown).OK())
	first := <-syncs
	require.True(t, c.PropertySet(PropertyCC, 4, DefaultCC&^1).OK())
	until(t, func() bool { return csts(c) == 0 })
	require.True(t, c.PropertySet(PropertyCC, 4, DefaultCC).OK())
	require.True(t, c.OpenQueue(1, 2).OK())
	first <- nil
	done := make(chan struct{})
	go func() { c.finishShutdown(0); close(done) }() // another that is as old
	(<-syncs) <- nil
	<-done
	assert.ErrorIs(t, c.OpenQueue(1, 2), nvme.CommandSequenceError, "it is open")

	require.True(t, c.PropertySet(PropertyCC, 4, shutdown).OK())
	second := <-syncs
	done = make(chan struct{})
	go func() { c.finishShutdown(0); close(done) }()
	(<-syncs) <- nil
	<-done
	assert.Equal(t, uint64(5), csts(c), "its flush has not ended")
	second <- nil
	until(t, func() bool { return csts(c) == 9 })
}

func TestConfigurationsThatCannotBe(t *testing.T) {
	d := newDrive(t)
	for name, configuration := range map[string]uint64{
		"pages of 8 KiB":       DefaultCC | 1<<7,
		"weighted arbitration": DefaultCC | 1<<11,
		"entries of 128 bytes": DefaultCC + 1<<16,
		"no entry size":        1 | 6<<4,
		"unknown command sets": DefaultCC&^(7<<4) | 1<<4,
	} {
		t.Run(name, func(t *testing.T) {
			c, err := d.Connect(HostID{}, 0)
			require.NoError(t, err)
			defer c.Close()
			require.True(t, c.PropertySet(PropertyCC, 4, configuration).OK())
			assert.Equal(t, uint64(2), csts(c), "fatal")
			require.True(t, c.PropertySet(PropertyCC, 4, configuration&^1).OK())
			until(t, func() bool { return csts(c) == 0 })
			require.True(t, c.PropertySet(PropertyCC, 4, DefaultCC).OK())
			assert.Equal(t, uint64(1), csts(c), "a reset mends it")
		})
	}
}

func TestCommandSetSelection(t *testing.T) {
	d := newDrive(t)
	for selected, want := range map[uint64]struct {
		namespaces []uint32
		queues     bool
	}{
		cssNVM:   {[]uint32{1}, true},
		cssMany:  {[]uint32{1, 2, 3}, true},
		cssAdmin: {[]uint32{1, 2, 3}, false},
	} {
		c, err := d.Connect(HostID{}, 0)
		require.NoError(t, err)
		require.True(t, c.PropertySet(PropertyCC, 4, DefaultCC&^(7<<4)|selected<<4).OK())
		require.Equal(t, uint64(1), csts(c))
		list, st := c.identifyPage(nvme.CNSActiveNamespaces, 0, 0, 0)
		require.True(t, st.OK())
		assert.Equal(t, want.namespaces, nvme.UnmarshalNamespaceList(list))
		assert.Equal(t, want.queues, c.OpenQueue(1, 2).OK())
		if want.queues {
			cmd := cs.MemoryRead(0, 4)
			_, st = c.Parse(1, &cmd)
			assert.Equal(t, len(want.namespaces) == 1, st.Is(nvme.InvalidNamespace))
		}
		require.NoError(t, c.Close())
	}
}

func TestProperties(t *testing.T) {
	c := newDrive(t).enabled()
	for _, test := range []struct {
		name     string
		offset   uint32
		size     int
		readable bool
	}{
		{"capabilities", PropertyCAP, 8, true},
		{"half of the capabilities", PropertyCAP, 4, false},
		{"version", PropertyVS, 4, true},
		{"version in eight bytes", PropertyVS, 8, false},
		{"configuration", PropertyCC, 4, true},
		{"status", PropertyCSTS, 4, true},
		{"subsystem reset", PropertyNSSR, 4, true},
		{"controller memory buffer", PropertyCMBSZ, 4, true},
		{"persistent memory region", PropertyPMR, 4, true},
		{"ready timeouts", PropertyCRTO, 4, false},
		{"admin submission queue", 0x28, 4, false},
		{"an odd offset", 1, 4, false},
	} {
		_, st := c.PropertyGet(test.offset, test.size)
		assert.Equal(t, test.readable, st.OK(), test.name)
		assert.Equal(t, !test.readable, st.DNR(), test.name)
	}
	for _, offset := range []uint32{PropertyCAP, PropertyVS, PropertyCSTS, PropertyNSSR, 0xffffffff} {
		assert.ErrorIs(t, c.PropertySet(offset, 4, 0), nvme.InvalidField)
	}
	assert.ErrorIs(t, c.PropertySet(PropertyCC, 8, 0), nvme.InvalidField)
	assert.ErrorIs(t, c.PropertySet(PropertyCC, 4, 1<<32), nvme.InvalidField)
}

func TestResetEndsCommandsAndGivesMemoryBack(t *testing.T) {
	d := newDrive(t)
	d.compute.started, d.compute.hold = make(chan struct{}), make(chan struct{})
	c := d.enabled()
	run := func(queue uint16, cmd nvme.Command, data []byte) nvme.Completion {
		return c.Execute(context.Background(), queue, &cmd, data)
	}
	out := run(0, cs.SLMReserve(0, 4096), nil)
	require.True(t, out.Status().OK())
	p := cs.Preprocess{Ranges: []cs.Range{{Addr: 0, Len: 4}}}
	b, _ := p.Marshal()
	done := make(chan nvme.Completion)
	go func() { done <- run(1, cs.PreprocessCommand(uint32(len(b))), b) }()
	<-d.compute.started
	require.True(t, c.PropertySet(PropertyCC, 4, DefaultCC&^1).OK())
	out = <-done
	assert.ErrorIs(t, out.Status(), nvme.QueueDeleted)
	until(t, func() bool { return csts(c) == 0 })
	assert.Zero(t, d.slm.Reserved())
	require.True(t, c.PropertySet(PropertyCC, 4, DefaultCC).OK())
	out = run(1, nvme.Flush(1), nil)
	assert.ErrorIs(t, out.Status(), nvme.CommandSequenceError, "queues are gone with the reset")
	require.True(t, c.OpenQueue(1, 2).OK())
	out = run(1, cs.Fetch(0, 4), make([]byte, 4))
	assert.ErrorIs(t, out.Status(), nvme.AccessDenied)
}

func TestCloseWaitsForWhatRuns(t *testing.T) {
	d := newDrive(t)
	d.compute.started, d.compute.hold = make(chan struct{}), make(chan struct{})
	c := d.connect()
	at := reserve(t, c, 4096)
	done := make(chan error, 1)
	go func() {
		p := cs.Preprocess{Ranges: []cs.Range{{Addr: at, Len: 4}}}
		b, _ := p.Marshal()
		cmd := cs.PreprocessCommand(uint32(len(b)))
		_, err := c.IO(context.Background(), &cmd, b)
		done <- err
	}()
	<-d.compute.started
	closed := make(chan error)
	go func() { closed <- c.Close() }()
	until(t, func() bool {
		cmd := nvme.KeepAlive()
		_, err := c.Admin(context.Background(), &cmd, nil)
		return err != nil
	})
	assert.Equal(t, uint64(4096), d.slm.Reserved(), "not given back while it is used")
	close(d.compute.hold)
	require.NoError(t, <-done, "what ran has completed")
	require.NoError(t, <-closed)
	assert.Zero(t, d.slm.Reserved())
	assert.Zero(t, d.Associations())
	require.NoError(t, c.Close(), "twice is not an error")
	_, ok := c.(nvme.Mapper).MapSLM(at, 4)
	assert.False(t, ok)
}

func TestQueueDepthAtItsLimits(t *testing.T) {
	d := newDrive(t)
	c, err := d.Connect(HostID{}, 0)
	require.NoError(t, err)
	defer c.Close()
	require.True(t, c.PropertySet(PropertyCC, 4, DefaultCC).OK())
	for size, want := range map[int]nvme.Status{0: nvme.InvalidQueueSize, 1: nvme.InvalidQueueSize,
		MaxDepth + 1: nvme.InvalidQueueSize} {
		assert.ErrorIs(t, c.OpenQueue(1, size), want)
	}
	assert.ErrorIs(t, c.OpenQueue(0, 2), nvme.InvalidQueueID)
	assert.ErrorIs(t, c.OpenQueue(MaxQueues+1, 2), nvme.InvalidQueueID)
	require.True(t, c.OpenQueue(MaxQueues, MaxDepth).OK())
	require.True(t, c.OpenQueue(1, 2).OK())

	d.compute.started, d.compute.hold = make(chan struct{}), make(chan struct{})
	p := cs.Preprocess{}
	b, _ := p.Marshal()
	done := make(chan nvme.Completion, 2)
	for cid := range uint16(2) {
		go func() {
			cmd := cs.PreprocessCommand(uint32(len(b)))
			cmd.SetCID(cid)
			done <- c.Execute(context.Background(), 1, &cmd, b)
		}()
		<-d.compute.started
	}
	cmd := nvme.Flush(1)
	cmd.SetCID(9)
	out := c.Execute(context.Background(), 1, &cmd, nil)
	assert.ErrorIs(t, out.Status(), nvme.CommandSequenceError, "one more than the queue holds")
	out = c.Execute(context.Background(), MaxQueues, &cmd, nil)
	assert.True(t, out.Status().OK(), "another queue has room")
	c.CloseQueue(1)
	for range 2 {
		out = <-done
		assert.ErrorIs(t, out.Status(), nvme.QueueDeleted)
	}
	require.True(t, c.OpenQueue(1, 2).OK(), "it can be opened again")
	out = c.Execute(context.Background(), 1, &cmd, nil)
	assert.True(t, out.Status().OK())
}

// stepped returns a time as time.Now would return it if the machine's time had been set forward by d before: the
// reading of the wall clock is later, and that of the monotonic clock is not.
func stepped(t *testing.T, at time.Time, d time.Duration) time.Time {
	t.Helper()
	was := at
	*(*uint64)(unsafe.Pointer(&at)) += uint64(d/time.Second) << 30
	require.Equal(t, d, time.Duration(at.UnixNano()-was.UnixNano()))
	require.Zero(t, at.Sub(was))
	return at
}

func TestKeepAliveFollowsTheMonotonicClock(t *testing.T) {
	c, err := newDrive(t).Connect(HostID{}, 1500)
	require.NoError(t, err)
	defer c.Close()
	require.True(t, c.PropertySet(PropertyCC, 4, DefaultCC).OK())
	assert.False(t, c.Expired(stepped(t, c.LastSeen(), time.Hour)))
	assert.True(t, c.Expired(c.LastSeen().Add(time.Hour)))
}

func TestKeepAlive(t *testing.T) {
	now := time.Unix(1000, 0)
	d := newDrive(t, func(o *Options) { o.Now = func() time.Time { return now } })
	c, err := d.Connect(HostID{}, 1500) // rounded up to 2 s
	require.NoError(t, err)
	defer c.Close()
	require.True(t, c.PropertySet(PropertyCC, 4, DefaultCC).OK())
	assert.False(t, c.Expired(now.Add(2*time.Second)))
	assert.True(t, c.Expired(now.Add(2*time.Second+1)))
	now = now.Add(1900 * time.Millisecond)
	cmd := nvme.GetFeature(nvme.FeatureArbitration)
	c.Parse(0, &cmd) // any command is a sign of life
	assert.False(t, c.Expired(now.Add(2*time.Second)))
	set := nvme.SetFeature(nvme.FeatureKeepAlive, 0)
	out := c.Execute(context.Background(), 0, &set, nil)
	require.True(t, out.Status().OK())
	assert.False(t, c.Expired(now.Add(time.Hour)), "turned off")
	c.Fail("keep alive expired")
	assert.Equal(t, uint64(2), csts(c))
	assert.Equal(t, "failed", c.State())
	_, st := c.Parse(0, &cmd)
	assert.ErrorIs(t, st, nvme.CommandSequenceError)
}

func TestAssociationsAreBounded(t *testing.T) {
	d := newDrive(t, func(o *Options) { o.MaxAssociations = 2 })
	a, b := d.connect(), d.connect()
	_, err := Local(d.Subsystem, HostID{NQN: "third"})
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, a.Close())
	c := d.connect()
	admin(t, c, nvme.KeepAlive(), nil, nvme.Success)
	admin(t, b, nvme.KeepAlive(), nil, nvme.Success)
	cmd := nvme.KeepAlive()
	_, err = a.Admin(context.Background(), &cmd, nil)
	assert.ErrorIs(t, err, nvme.ErrClosed)
}

// TestPendingAssociationsTakeNoPlace: hosts that have not authenticated cannot keep others out.
func TestPendingAssociationsTakeNoPlace(t *testing.T) {
	d := newDrive(t, func(o *Options) { o.MaxAssociations = 2 })
	var pending []*Controller
	for range 10 {
		c, err := d.ConnectPending(HostID{NQN: "pending"}, 0)
		require.NoError(t, err)
		pending = append(pending, c)
	}
	a, b := d.connect(), d.connect()
	_, err := d.ConnectPending(HostID{}, 0)
	require.ErrorIs(t, err, ErrBusy)
	require.ErrorIs(t, pending[0].Admit(), ErrBusy)
	require.NoError(t, a.Close())
	require.NoError(t, pending[0].Admit())
	require.NoError(t, pending[0].Admit(), "twice is once")
	require.ErrorIs(t, pending[1].Admit(), ErrBusy)
	for _, c := range pending {
		require.NoError(t, c.Close())
		require.NoError(t, c.Close())
		require.NoError(t, c.Admit(), "it is over: nothing to admit")
	}
	require.NoError(t, b.Close())
	assert.Zero(t, d.Associations())
	d.connect()
	d.connect()
	_, err = d.Connect(HostID{}, 0)
	require.ErrorIs(t, err, ErrBusy, "as many as before, and no more")
}

func TestControllerIdentifiersAreNotGivenTwice(t *testing.T) {
	d := newDrive(t)
	first := d.enabled()
	d.nextID = maxControllerID - 1
	seen := map[uint16]bool{first.ID(): true}
	for range 3 {
		c := d.enabled()
		assert.False(t, seen[c.ID()])
		assert.NotZero(t, c.ID())
		assert.LessOrEqual(t, c.ID(), uint16(maxControllerID))
		seen[c.ID()] = true
	}
}
