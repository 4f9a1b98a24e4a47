package hosttest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/tcp"
)

func (s *suite) readsOfOneByte() {
	h := s.dial(through(func() *meddler { return &meddler{most: 1} }),
		func(o *tcp.DialOptions) { o.HeaderDigest, o.DataDigest = true, true })
	s.both(h, 0, pattern(16384, 1))
	require.Zero(s, h.Stats())
}

// drivesDigests: one byte of each of a number of answers is broken; each error is counted, and the command is read
// again.
func (s *suite) drivesDigests() {
	var arm atomic.Bool
	h := s.dial(through(func() *meddler {
		return &meddler{seen: func(b []byte) {
			if len(b) > 400 && arm.CompareAndSwap(true, false) {
				b[len(b)/2] ^= 1
			}
		}}
	}), func(o *tcp.DialOptions) { o.DataDigest = true })
	want := pattern(16384, 3)
	require.NoError(s, s.write(s.Context(), h, 0, want))
	const injected = 25
	got := make([]byte, len(want))
	for range injected {
		clear(got)
		arm.Store(true)
		require.NoError(s, s.read(s.Context(), h, 0, got), "it is read again")
		require.Equal(s, want, got)
		require.False(s, arm.Load())
		require.NoError(s, s.read(s.Context(), h, 0, got))
	}
	require.Equal(s, tcp.Stats{DigestErrors: injected, Requeued: injected}, h.Stats())
}

// hostsDigests: what the host writes is broken on its way, and written in the end.
func (s *suite) hostsDigests() {
	var arm atomic.Bool
	h := s.dial(through(func() *meddler {
		return &meddler{wrote: func(b []byte) {
			if len(b) >= 16<<10 && arm.CompareAndSwap(true, false) { // data that the drive asked for, and nothing else
				b[len(b)/2] ^= 1
			}
		}}
	}), func(o *tcp.DialOptions) { o.DataDigest = true })
	const injected = 3
	for i := range byte(injected) {
		arm.Store(true)
		s.both(h, 0, pattern(65536, i))
		require.False(s, arm.Load())
		s.both(h, 0, pattern(65536, 100+i))
	}
	st := h.Stats()
	if s.KeepsConnection {
		require.Equal(s, tcp.Stats{Requeued: injected}, st)
	} else {
		require.GreaterOrEqual(s, st.Requeued, uint64(injected))
	}
}

// headerDigests: a header that the drive sent broken cannot be trusted, so the host connects again and repeats its
// commands.
func (s *suite) headerDigests() {
	var arm atomic.Bool
	h := s.dial(through(func() *meddler {
		return &meddler{seen: func(b []byte) {
			if len(b) >= 24 && arm.CompareAndSwap(true, false) {
				b[13] ^= 0x40
			}
		}}
	}), func(o *tcp.DialOptions) { o.HeaderDigest, o.KeepAlive = true, -1 }) // nothing else is answered meanwhile
	for i := range byte(3) {
		s.both(h, 0, pattern(4096, i))
		arm.Store(true)
		s.both(h, 0, pattern(4096, 50+i))
		require.False(s, arm.Load())
	}
	require.Equal(s, tcp.Stats{Reconnects: 3, Requeued: 3}, h.Stats())
}

// connectionsLost checks that readers and writers do not notice connections that break in the middle of any transfer.
func (s *suite) connectionsLost() {
	const budget = 300 << 10
	for _, digests := range []bool{false, true} {
		bytes := &limit{left: budget}
		h := s.dial(through(func() *meddler { return &meddler{limit: bytes} }), func(o *tcp.DialOptions) {
			o.Queues, o.HeaderDigest, o.DataDigest, o.LongestDelay = 2, digests, digests, 100*time.Millisecond
		})
		const losses = 4
		for n := range uint64(losses) {
			s.work(h, 0, 8, 4)
			require.LessOrEqual(s, h.Stats().Reconnects, n+1)
			bytes.mu.Lock()
			require.LessOrEqual(s, bytes.left, 0, "the work was enough")
			bytes.left = budget - int(n)*10007
			bytes.mu.Unlock()
		}
		bytes.mu.Lock()
		bytes.left = 0
		bytes.mu.Unlock()
		require.NoError(s, s.read(s.Context(), h, 0, make([]byte, s.BlockSize)))
		require.NotZero(s, h.Stats().Reconnects)
	}
}

// lostWhileConnecting: a connection that breaks at any point before it is ready is an error, never a wait or a panic,
// and the next is good.
func (s *suite) lostWhileConnecting() {
	for _, n := range []int{1, 100, 128, 200, 300, 1000, 1300, 2000, 5000} {
		bytes := &limit{left: n}
		o := s.options(through(func() *meddler { return &meddler{limit: bytes} }))
		h, err := tcp.Dial(s.Context(), o)
		if err == nil { // it broke behind what was still to come
			require.NoError(s, s.read(s.Context(), h, 0, make([]byte, s.BlockSize)))
			require.NoError(s, h.Close())
			continue
		}
		require.NotErrorIs(s, err, context.DeadlineExceeded)
		h, err = tcp.Dial(s.Context(), o)
		require.NoError(s, err, "the second time, after %d bytes the first", n)
		require.NoError(s, h.Close())
	}
}

// cancelled: calls that are given up end, their identifiers are free again, and the association lives on.
func (s *suite) cancelled() {
	h := s.dial(func(o *tcp.DialOptions) { o.Depth = 2 })
	for i := range s.few(200) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%5)*200*time.Microsecond)
		if err := s.write(ctx, h, 0, make([]byte, 65536)); err != nil {
			require.ErrorIs(s, err, context.DeadlineExceeded)
		}
		cancel()
		if !s.Aborts {
			continue
		}
		ctx, cancel = context.WithCancel(context.Background())
		event := nvme.AsyncEventRequest()
		done := make(chan error, 1)
		go func() { _, err := h.Admin(ctx, &event, nil); done <- err }()
		cancel()
		require.ErrorIs(s, <-done, context.Canceled)
	}
	s.work(h, 0, 8, 3) // with a place for two: both are free
	require.Zero(s, h.Stats().Reconnects)
}

// tooLate: a command that the drive answers too late ends, with what is known of it, and the association lives on.
func (s *suite) tooLate() {
	timeout := 100 * time.Millisecond
	if s.Slow {
		timeout = time.Second
	}
	gate := make(chan struct{})
	var held atomic.Bool
	h := s.dial(through(func() *meddler {
		return &meddler{seen: func([]byte) {
			if held.Load() {
				<-gate
			}
		}}
	}), func(o *tcp.DialOptions) { o.KeepAlive, o.CommandTimeout = -1, timeout })
	held.Store(true)
	time.AfterFunc(4*timeout, func() { close(gate) })
	if err := s.write(context.Background(), h, 0, make([]byte, s.BlockSize)); err != nil {
		require.ErrorIs(s, err, tcp.ErrTimeout)
	}
	require.NotZero(s, h.Stats().Aborted)
	s.both(h, 0, pattern(4096, 9))
	require.Zero(s, h.Stats().Reconnects)
}

// keepAlive: an idle association lives for longer than its keep alive timeout.
func (s *suite) keepAlive() {
	h := s.dial(func(o *tcp.DialOptions) { o.KeepAlive = 4 * time.Second })
	time.Sleep(8500 * time.Millisecond) // a busy machine may hold a Keep Alive back for seconds
	require.NoError(s, s.read(s.Context(), h, 0, make([]byte, s.BlockSize)))
	assert.Zero(s, h.Stats().Reconnects)
}
