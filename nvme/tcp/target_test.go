package tcp

import (
	"context"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// ended waits for the other side to close the connection.
func (r *rawHost) ended() {
	r.t.Helper()
	_, _, err := r.rx.NextPDU()
	require.Error(r.t, err)
	require.NotErrorIs(r.t, err, os.ErrDeadlineExceeded)
}

// Connections that are slow or silent are cut off, wherever they stop, and others are served.
func TestSlowAndSilentPeers(t *testing.T) {
	noLeaks(t)
	s := serve(t, TargetOptions{Stall: 300 * time.Millisecond, Handshake: 300 * time.Millisecond})
	other := s.dial(DialOptions{})
	t.Run("says nothing", func(t *testing.T) { dialRaw(t, s.address).ended() })
	t.Run("stops inside a PDU", func(t *testing.T) {
		r := dialRaw(t, s.address)
		r.send((&pdu.ICReq{}).Put(new([pdu.ICSize]byte))[:100])
		r.ended()
	})
	t.Run("does not connect", func(t *testing.T) {
		r := dialRaw(t, s.address)
		r.initialise(pdu.ICReq{})
		r.ended()
	})
	t.Run("does not send the data", func(t *testing.T) {
		_, id := s.admin(pdu.ICReq{})
		r := s.ioQueue(pdu.ICReq{}, id, fabrics.Connect{})
		r.capsule(nvme.Write(1, 0, 64, 512, false), nil)
		f, _, _ := r.receive()
		require.Equal(t, pdu.TypeR2T, f.Type)
		r.ended()
	})
	t.Run("does not read", func(t *testing.T) {
		_, id := s.admin(pdu.ICReq{})
		r := s.ioQueue(pdu.ICReq{}, id, fabrics.Connect{Size: 31})
		require.NoError(t, r.nc.(*net.TCPConn).SetReadBuffer(4096))
		for range 32 {
			r.capsule(nvme.Read(1, 0, 2048, 512), nil)
		}
		require.Eventually(t, func() bool {
			for _, c := range s.target.allConnections() {
				if c.nc.RemoteAddr().String() == r.nc.LocalAddr().String() {
					return false
				}
			}
			return true
		}, time.Minute, 10*time.Millisecond)
	})
	require.NoError(t, read(t.Context(), other, 0, make([]byte, 512)))
	assert.Zero(t, other.Stats().Reconnects, "an idle connection is not a slow one")
}

func TestKeepAliveExpires(t *testing.T) {
	t.Parallel()
	s := serve(t, TargetOptions{})
	r := s.dialRaw()
	r.initialise(pdu.ICReq{})
	cpl := r.connect(fabrics.Connect{Size: 31, KeepAlive: 2800}, fabrics.ConnectData{ControllerID: fabrics.AnyController})
	require.True(t, cpl.Status().OK())
	id := uint16(cpl.DW0())
	r.do(fabrics.PropertySet(0x14, 4, 0x460061), nil)
	io := s.ioQueue(pdu.ICReq{}, id, fabrics.Connect{})
	// Traffic on an I/O queue is a sign of life, for longer than the 3 s to which the drive rounds the time up. That
	// time is long, so that a busy machine does not let it pass between two reads.
	for end := time.Now().Add(3500 * time.Millisecond); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		cpl, _ := io.do(nvme.Read(1, 0, 1, 512), nil)
		require.True(t, cpl.Status().OK())
	}
	r.ended()
	io.ended()
	require.Eventually(t, func() bool { return s.sub.Associations() == 0 }, time.Minute, time.Millisecond)
}

func TestTooManyConnections(t *testing.T) {
	s := serve(t, TargetOptions{MaxConnections: 2})
	a, _ := s.admin(pdu.ICReq{})
	s.admin(pdu.ICReq{})
	c := s.dialRaw()
	c.ended()
	require.NoError(t, a.nc.Close())
	require.Eventually(t, func() bool {
		r := dialRaw(t, s.address)
		r.send((&pdu.ICReq{}).Put(new([pdu.ICSize]byte)))
		_, _, err := r.rx.NextPDU()
		return err == nil
	}, time.Minute, 10*time.Millisecond, "there is room again")
}

// A connection never holds more memory than its budget, however many large commands wait.
func TestMemoryOfAConnection(t *testing.T) {
	s := serve(t, TargetOptions{ConnectionMemory: 1 << 20})
	_, id := s.admin(pdu.ICReq{})
	r := s.ioQueue(pdu.ICReq{}, id, fabrics.Connect{Size: 15})
	for range 8 {
		r.capsule(nvme.Write(1, 0, 1024, 512, false), nil) // 512 KiB each
	}
	asked := map[uint16]pdu.R2T{}
	take := func() {
		f, h, _ := r.receive()
		require.Equal(t, pdu.TypeR2T, f.Type)
		q := pdu.ParseR2T(h)
		asked[q.CID] = q
	}
	take()
	take()
	require.NoError(t, r.nc.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, _, err := r.rx.NextPDU()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the third waits for memory")
	require.NoError(t, r.nc.SetReadDeadline(time.Now().Add(time.Minute)))
	done := 0
	for done < 8 {
		for cid, q := range asked {
			delete(asked, cid)
			r.h2c(pdu.Data{CID: cid, Tag: q.Tag, Length: q.Length}, pdu.FlagLast, make([]byte, q.Length))
		}
		f, h, _ := r.receive()
		if f.Type == pdu.TypeR2T {
			q := pdu.ParseR2T(h)
			asked[q.CID] = q
			continue
		}
		cpl := pdu.CompletionOf(h)
		require.True(t, cpl.Status().OK())
		done++
	}
	for _, c := range s.target.allConnections() {
		require.Eventually(t, func() bool { // memory is given back after the last answer was sent
			return c.budget.TakeWithoutWaiting(1 << 20)
		}, time.Minute, time.Millisecond, "memory is missing")
	}
}

// Shutdown answers what runs, and takes nothing more.
func TestShutdown(t *testing.T) {
	noLeaks(t)
	s := serve(t, TargetOptions{})
	h := s.dial(DialOptions{GiveUp: -1})
	hold := make(chan struct{})
	s.flash.setHold(hold)
	wrote := make(chan error, 1)
	go func() { wrote <- write(context.Background(), h, 0, pattern(65536, 4)) }()
	require.Eventually(t, func() bool { return s.flash.held.Load() == 1 }, time.Minute, time.Millisecond)
	time.AfterFunc(50*time.Millisecond, func() { close(hold) })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, s.target.Shutdown(ctx))
	require.NoError(t, <-wrote, "it ran, so it is answered")
	assert.Equal(t, pattern(65536, 4), s.flash.data[:65536])
	require.Error(t, read(context.Background(), h, 0, make([]byte, 512)))
}

func TestShutdownThatTakesTooLong(t *testing.T) {
	s := serve(t, TargetOptions{})
	_, id := s.admin(pdu.ICReq{})
	r := s.ioQueue(pdu.ICReq{}, id, fabrics.Connect{})
	r.capsule(nvme.Write(1, 0, 64, 512, false), nil)
	r.receive() // an R2T that is never answered
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := s.target.Shutdown(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "cut off")
}

// Two thousand hosts come and go, in order and without a word, and nothing is left of them.
func TestConnectDisconnect(t *testing.T) {
	noLeaks(t)
	s := serve(t, TargetOptions{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 500 {
				if (i+w)%2 == 0 {
					nc, err := net.Dial("tcp", s.address)
					if !assert.NoError(t, err) {
						return
					}
					if i%4 == 0 {
						_, _ = nc.Write((&pdu.ICReq{}).Put(new([pdu.ICSize]byte)))
					}
					_ = nc.(*net.TCPConn).SetLinger(0)
					_ = nc.Close()
					continue
				}
				h, err := Dial(context.Background(), DialOptions{Address: s.address, Subsystem: testNQN, Depth: 4})
				if !assert.NoError(t, err) || !assert.NoError(t, h.Close()) {
					return
				}
			}
		}()
	}
	wg.Wait()
	require.Eventually(t, func() bool {
		return s.target.countConnections() == 0 && s.sub.Associations() == 0
	}, time.Minute, time.Millisecond)
	assert.Empty(t, s.target.associations)
}

func TestTargetOptionsRefused(t *testing.T) {
	for name, o := range map[string]TargetOptions{
		"host": {Hosts: []string{"x"}}, "little data": {MaxH2CData: 1024}, "odd data": {MaxH2CData: 5001},
		"much data": {MaxH2CData: 2 << 20},
	} {
		_, err := NewTarget(o)
		assert.Error(t, err, name)
	}
}

// countConnections returns the number of open connections.
func (t *Target) countConnections() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.conns)
}
