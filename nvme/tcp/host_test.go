package tcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/nvme/tcp/pdu"
	"github.com/millrace/millrace/nvme/tcp/stream"
)

// The drive goes away and comes back while hosts read and write: no host notices.
func TestReconnect(t *testing.T) {
	noLeaks(t)
	s := serve(t, TargetOptions{})
	h := s.dial(DialOptions{Queues: 2, FirstDelay: time.Millisecond, LongestDelay: 20 * time.Millisecond,
		KeepAlive: 2 * time.Second})
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			b, got := make([]byte, 16384), make([]byte, 16384)
			for i := byte(0); ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				copy(b, pattern(len(b), i+byte(w)))
				if !assert.NoError(t, write(context.Background(), h, uint64(w*100), b)) ||
					!assert.NoError(t, read(context.Background(), h, uint64(w*100), got)) || !assert.True(t, bytes.Equal(b, got)) {
					return
				}
			}
		}()
	}
	for i := range uint64(5) {
		s.stop()
		s.start(TargetOptions{}, s.address)
		require.Eventually(t, func() bool { return h.Stats().Reconnects > i }, time.Minute, time.Millisecond)
	}
	close(stop)
	wg.Wait()
	require.NoError(t, h.Close())
}

// A command that is not idempotent ends with ErrLost when its connection is lost. The table has the commands that are
// idempotent.
func TestLost(t *testing.T) {
	s := serve(t, TargetOptions{})
	h := s.dial(DialOptions{FirstDelay: time.Millisecond})
	event := nvme.AsyncEventRequest()
	done := make(chan error, 1)
	go func() { _, err := h.Admin(context.Background(), &event, nil); done <- err }()
	admin := h.link.Load().admin
	require.Eventually(t, func() bool { // until the command is written: its message has released the entry
		for i := range admin.entries {
			if s := &admin.entries[i]; s.event.Load() && s.cid.Load() != 0 && s.holds.Load() == 1 {
				return true
			}
		}
		return false
	}, time.Minute, time.Millisecond)
	s.stop()
	require.ErrorIs(t, <-done, ErrLost)
	s.start(TargetOptions{}, s.address)
	require.NoError(t, read(t.Context(), h, 0, make([]byte, 512)))

	for _, c := range []struct {
		admin bool
		cmd   nvme.Command
		want  bool
	}{
		{false, nvme.Read(1, 0, 1, 512), true}, {false, nvme.Write(1, 0, 1, 512, false), true}, {false,
			nvme.New(nvme.NVMFlush, nvme.AllNamespaces), true},
		{false, nvme.New(cs.IOPreprocess, 1), false}, {false, nvme.New(cs.SLMRead, 2), false}, {false,
			nvme.New(cs.ExecuteProgram, 3), false},
		{true, nvme.Identify(1, 0, 0), true}, {true, nvme.SetFeature(7, 0), false}, {true, nvme.New(cs.AdminSLMReserve, 0),
			false},
	} {
		assert.Equal(t, c.want, idempotent(c.admin, &c.cmd), c.cmd.String())
	}
}

func TestGiveUp(t *testing.T) {
	noLeaks(t)
	s := serve(t, TargetOptions{})
	h := s.dial(DialOptions{GiveUp: time.Millisecond, FirstDelay: time.Millisecond})
	s.stop()
	err := read(t.Context(), h, 0, make([]byte, 512))
	require.ErrorContains(t, err, "did not come back")
	require.NoError(t, h.Close())
	require.ErrorIs(t, read(t.Context(), h, 0, make([]byte, 512)), nvme.ErrClosed)
	require.NoError(t, h.Close())
}

// TestWhatEndsAReconnect starts a drive again that the host must not go on with. The first case changes the serial
// number that the host remembers.
func TestWhatEndsAReconnect(t *testing.T) {
	for name, c := range map[string]struct {
		serial string // that the host remembers; empty: the drive's
		again  TargetOptions
		want   error
	}{
		"another drive under the same name":    {"S0", TargetOptions{}, errOtherDrive},
		"a drive that serves the host no more": {"", TargetOptions{Hosts: []string{testNQN}}, ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, TargetOptions{})
			h := s.dial(DialOptions{FirstDelay: time.Millisecond})
			s.stop()
			if c.serial != "" {
				h.mu.Lock()
				h.serial = c.serial
				h.mu.Unlock()
			}
			s.start(c.again, s.address)
			require.ErrorIs(t, read(t.Context(), h, 0, make([]byte, 512)), c.want)
		})
	}
}

// slowEnd is a connection whose reader takes its time to end.
type slowEnd struct {
	net.Conn
	readers *atomic.Int32
}

func (c slowEnd) Read(b []byte) (int, error) {
	c.readers.Add(1)
	defer c.readers.Add(-1)
	n, err := c.Conn.Read(b)
	if err != nil {
		time.Sleep(20 * time.Millisecond)
	}
	return n, err
}

// TestNothingRunsOnAnotherDrive: a connection to another drive has ended when it is refused.
func TestNothingRunsOnAnotherDrive(t *testing.T) {
	noLeaks(t)
	s := serve(t, TargetOptions{})
	var readers atomic.Int32
	h := s.dial(DialOptions{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, address)
		return slowEnd{nc, &readers}, err
	}})
	require.NoError(t, h.Close())
	require.Zero(t, readers.Load())
	h.serial = "S0"
	_, err := h.newAssociation(t.Context())
	require.ErrorIs(t, err, errOtherDrive)
	require.Zero(t, readers.Load(), "nobody reads from it")
}

// Cancelled commands give their identifiers back: after 300 writes with short deadlines and 300 cancelled event
// requests, every entry of the queues is free, and the connection was not lost.
func TestCancellationLeaksNoIdentifier(t *testing.T) {
	noLeaks(t)
	s := serve(t, TargetOptions{})
	h := s.dial(DialOptions{Depth: 2})
	for i := range 300 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%5)*50*time.Microsecond)
		_ = write(ctx, h, 0, make([]byte, 65536))
		cancel()
		ctx, cancel = context.WithCancel(context.Background())
		event := nvme.AsyncEventRequest()
		done := make(chan error, 1)
		go func() { _, err := h.Admin(ctx, &event, nil); done <- err }()
		if i%2 == 0 {
			time.Sleep(50 * time.Microsecond)
		}
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	}
	l := h.link.Load()
	assert.Eventually(t, func() bool {
		return len(l.io[0].free) == 2 && len(l.admin.free) == cap(l.admin.free) && len(l.admin.urgent) == cap(l.admin.urgent)
	}, time.Minute, time.Millisecond, "every entry is free")
	assert.Zero(t, h.Stats().Reconnects)
	require.NoError(t, read(t.Context(), h, 0, make([]byte, 512)))
	require.NoError(t, h.Close())
}

// The host aborts a command that takes too long. The drive executes no further step of that command, which ends with
// ErrTimeout. The next command works without a reconnect.
func TestTimeout(t *testing.T) {
	const steps = 128 // of the command, 128 KiB each
	s := serve(t, TargetOptions{})
	h := s.dial(DialOptions{CommandTimeout: 50 * time.Millisecond, FirstDelay: time.Millisecond})
	step := make(chan struct{})
	s.flash.setHold(step)
	ended := make(chan error, 1)
	go func() {
		cmd := nvme.WriteZeroes(1, 0, steps*128<<10/512, false)
		_, err := h.IO(t.Context(), &cmd, nil)
		ended <- err
	}()
	require.Eventually(t, func() bool { return s.flash.held.Load() == 1 && h.Stats().Aborted == 1 }, time.Minute,
		time.Millisecond, "the command is aborted inside a step")
	// The flash ends a step from time to time, so that the abort arrives long before the last step begins.
	var err error
	executed := 0
	for running := true; running; {
		time.Sleep(100 * time.Millisecond)
		select {
		case step <- struct{}{}:
			executed++
			require.Less(t, executed, steps, "the whole command was executed")
		case err = <-ended:
			running = false
		}
	}
	require.ErrorIs(t, err, ErrTimeout)
	s.flash.setHold(nil)
	require.NoError(t, read(t.Context(), h, 0, make([]byte, 512)))
	assert.Zero(t, h.Stats().Reconnects)
}

func TestEvents(t *testing.T) {
	s := serve(t, TargetOptions{})
	events := make(chan nvme.AsyncEvent, 10)
	h := s.dial(DialOptions{OnEvent: func(e nvme.AsyncEvent) { events <- e }})
	for range 3 {
		s.sub.NamespaceChanged(1)
		require.Equal(t, nvme.EventNamespaceChanged, <-events)
		log := nvme.GetLog(nvme.LogChangedNamespaces, 0, 0, nvme.ChangedLogSize)
		_, err := h.Admin(t.Context(), &log, make([]byte, nvme.ChangedLogSize))
		require.NoError(t, err)
	}
	require.NoError(t, h.Close())
}

// In steady state a command allocates less than once on average, initiator and target together.
func TestNoAllocationPerCommand(t *testing.T) {
	if raceEnabled {
		t.Skip("pools forget under the race detector")
	}
	s := serve(t, TargetOptions{})
	h := s.dial(DialOptions{})
	b := make([]byte, 65536)
	for _, c := range []nvme.Command{nvme.Read(1, 0, 8, 512), nvme.Write(1, 0, 8, 512, false),
		nvme.Write(1, 0, 128, 512, false)} {
		data := b[:c.DataLength()]
		got := testing.AllocsPerRun(2000, func() {
			if _, err := h.IO(context.Background(), &c, data); err != nil {
				t.Error(err)
			}
		})
		assert.Less(t, got, 1.0, c.String()) // a garbage collection may empty the pools
	}
}

func TestDialErrorsSayWhatToDo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	address := l.Addr().String()
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			_ = nc.Close()
		}
	}()
	_, err = Dial(t.Context(), DialOptions{Address: address, Subsystem: testNQN})
	require.ErrorContains(t, err, "is it an NVMe/TCP target")
	require.ErrorIs(t, err, ErrLost, "a drive that was just then ended")
	require.NotErrorIs(t, err, io.EOF)
	require.NoError(t, l.Close())
	_, err = Dial(t.Context(), DialOptions{Address: address, Subsystem: testNQN})
	require.ErrorContains(t, err, "refused")
	_, err = Dial(t.Context(), DialOptions{Address: "here", Subsystem: testNQN})
	require.ErrorContains(t, err, "HOST:PORT")
	_, err = Dial(t.Context(), DialOptions{Address: address, Subsystem: "x"})
	require.ErrorContains(t, err, "nqn.YYYY-MM")
}

// A drive that breaks the protocol gets a termination request, and its connection is closed.
func TestDriveThatBreaksTheProtocol(t *testing.T) {
	for name, answer := range map[string]func(cid uint16) []byte{
		"completion of nothing": func(cid uint16) []byte {
			b := make([]byte, 24)
			cpl := nvme.NewCompletion(cid+1, nvme.Success)
			pdu.PutCompletion(b, &cpl)
			r := pdu.Rules{}
			f := r.Layout(pdu.TypeCapsuleResp, 0, 0)
			return f.Seal(b)
		},
		"data for a command without": func(cid uint16) []byte {
			b := make([]byte, 28)
			pdu.Data{CID: cid, Length: 4}.Put(b)
			r := pdu.Rules{}
			f := r.Layout(pdu.TypeC2HData, 0, 4)
			f.Seal(b)
			return b
		},
		"request of a command without": func(cid uint16) []byte {
			b := make([]byte, 24)
			pdu.R2T{CID: cid, Length: 4}.Put(b)
			r := pdu.Rules{}
			f := r.Layout(pdu.TypeR2T, 0, 0)
			return f.Seal(b)
		},
		"a host's PDU": func(uint16) []byte {
			b := make([]byte, 72)
			r := pdu.Rules{}
			f := r.Layout(pdu.TypeCapsuleCmd, 0, 0)
			return f.Seal(b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			said := make(chan *pdu.Error, 1)
			go func() {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				defer nc.Close()
				rx := stream.NewReader(nc, pdu.Rules{MaxData: 8192})
				if _, _, err := rx.NextPDU(); err != nil {
					return
				}
				_, _ = nc.Write((&pdu.ICResp{MaxH2CData: 4096}).Put(new([pdu.ICSize]byte)))
				f, h, err := rx.NextPDU() // Connect
				if err != nil {
					return
				}
				cmd := pdu.CommandOf(h)
				_ = rx.SkipData(&f)
				_, _ = nc.Write(answer(cmd.CID()))
				for {
					f, h, err := rx.NextPDU()
					if err != nil {
						said <- nil
						return
					}
					if f.Type == pdu.TypeH2CTermReq {
						said <- pdu.ParseTerminate(h)
						return
					}
				}
			}()
			_, err = Dial(t.Context(), DialOptions{Address: l.Addr().String(), Subsystem: testNQN,
				ConnectTimeout: 5 * time.Second})
			require.Error(t, err)
			require.False(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
			e := <-said
			require.NotNil(t, e)
			assert.Equal(t, pdu.FatalHeader, e.Status)
		})
	}
}

// A command that comes when the connection is lost already was never sent: it waits for the next association, even if
// it is not idempotent. The counters are up to date by then.
func TestCommandsAfterALoss(t *testing.T) {
	noLeaks(t)
	s := serve(t, TargetOptions{})
	h := s.dial(DialOptions{FirstDelay: time.Millisecond})
	const losses = 50
	for i := range uint64(losses) {
		h.link.Load().endWithCause(errors.New("the test lost it"))
		set := nvme.SetFeature(nvme.FeatureWriteCache, 1)
		_, err := h.Admin(t.Context(), &set, nil)
		require.NoError(t, err)
		require.Equal(t, Stats{Reconnects: i + 1}, h.Stats(), "nothing was sent twice")
	}
	require.NoError(t, h.Close())
}

// Many commands run at once, at any moment of a loss: each command is done, or its loss is reported.
func TestCommandsDuringLosses(t *testing.T) {
	noLeaks(t)
	s := serve(t, TargetOptions{})
	h := s.dial(DialOptions{FirstDelay: time.Millisecond, LongestDelay: time.Millisecond, Queues: 2})
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-done:
					return
				default:
				}
				set := nvme.SetFeature(nvme.FeatureWriteCache, 1)
				if _, err := h.Admin(context.Background(), &set, nil); err != nil {
					assert.ErrorIs(t, err, ErrLost)
				}
			}
		}()
	}
	for range 20 {
		if l := h.link.Load(); l != nil {
			l.endWithCause(errors.New("the test lost it"))
		}
		assert.NoError(t, read(t.Context(), h, 0, make([]byte, 512)))
	}
	close(done)
	wg.Wait()
	require.NoError(t, h.Close())
}

// A message that was taken and not written when its connection ended is settled as unsent, with stream.ErrClosed. A
// message whose write had begun is not.
func TestUnwrittenIsUnsent(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	settled := make(chan error, 3)
	entered := make(chan struct{}, 3)
	o := stream.NewOutbox(a, func(b *stream.Batch, m *int) { entered <- struct{}{}; b.AddData(make([]byte, 100)) },
		func(_ *int, err error) { settled <- err })
	require.NoError(t, o.Queue(1, false))
	<-entered // its write waits, since the other end does not read
	require.NoError(t, o.Queue(2, false))
	require.NoError(t, a.Close())
	first, second := <-settled, <-settled
	require.ErrorIs(t, first, io.ErrClosedPipe)
	require.NotErrorIs(t, first, stream.ErrClosed, "some of it may have been read")
	require.ErrorIs(t, second, stream.ErrClosed)
	require.ErrorIs(t, second, io.ErrClosedPipe)
	o.Stop(net.ErrClosed)
	require.Empty(t, entered, "it was not even encoded")
}

func TestRepeatable(t *testing.T) {
	for _, c := range []struct {
		admin bool
		cmd   nvme.Command
		want  bool
	}{
		{false, nvme.New(cs.IOFetch, 1), true}, {false, nvme.New(cs.IOStore, 1), true}, {false, nvme.New(cs.IOPreprocess, 1),
			false},
		{false, nvme.New(cs.SLMRead, 2), true}, {false, nvme.New(cs.SLMWrite, 2), true}, {false, nvme.New(cs.SLMCopy, 2),
			false},
		{false, nvme.New(cs.ExecuteProgram, 3), false}, {true, nvme.New(cs.IOFetch, 1), false}, {true,
			nvme.New(cs.AdminSLMReserve, 0), false},
	} {
		assert.Equal(t, c.want, !c.admin && cs.Repeatable(&c.cmd), c.cmd.String())
		assert.False(t, c.want && idempotent(c.admin, &c.cmd), "not in another association")
	}
}

// Commands that are bound to an association are not sent in the next one, even if they are idempotent.
func TestBoundCommands(t *testing.T) {
	noLeaks(t)
	s := serve(t, TargetOptions{})
	h := s.dial(DialOptions{FirstDelay: time.Millisecond})
	first, err := h.Association(t.Context())
	require.NoError(t, err)
	bound := h.InAssociation(first)
	b := make([]byte, 512)
	require.NoError(t, read(t.Context(), bound, 0, b))
	h.link.Load().endWithCause(errors.New("the test lost it"))
	require.ErrorIs(t, read(t.Context(), bound, 0, b), ErrLost)
	second, err := h.Association(t.Context())
	require.NoError(t, err)
	require.Equal(t, first+1, second)
	require.ErrorIs(t, read(t.Context(), bound, 0, b), ErrLost)
	require.NoError(t, read(t.Context(), h.InAssociation(second), 0, b))
	require.NoError(t, read(t.Context(), h, 0, b))
	require.Equal(t, Stats{Reconnects: 1}, h.Stats())

	s.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for err == nil { // until the host has noticed
		_, err = h.Association(ctx)
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, h.Close())
	require.ErrorIs(t, read(t.Context(), bound, 0, b), nvme.ErrClosed)
	_, err = h.Association(t.Context())
	require.ErrorIs(t, err, nvme.ErrClosed)
}
