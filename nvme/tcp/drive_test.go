package tcp

import (
	"context"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
)

const (
	testNQN = "nqn.2024-01.io.millrace:test"
	hostNQN = "nqn.2024-01.io.millrace:host"
)

// memFlash is flash in memory. A write is held up while hold is not nil and open.
type memFlash struct {
	mu   sync.RWMutex
	data []byte
	hold chan struct{}
	held atomic.Int32 // writes that are held up
}

func newFlash(n int) *memFlash { return &memFlash{data: make([]byte, n)} }

func (f *memFlash) ReadAt(p []byte, off int64) (int, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return copy(p, f.data[off:]), nil
}

func (f *memFlash) WriteAt(p []byte, off int64) (int, error) {
	f.mu.RLock()
	hold := f.hold
	f.mu.RUnlock()
	if hold != nil {
		f.held.Add(1)
		<-hold
		f.held.Add(-1)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return copy(f.data[off:], p), nil
}

func (f *memFlash) Sync() error    { return nil }
func (f *memFlash) Size() int64    { return int64(len(f.data)) }
func (f *memFlash) ReadOnly() bool { return false }
func (f *memFlash) Discard(off, n int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.data[off : off+n])
	return nil
}

func (f *memFlash) setHold(c chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hold = c
}

// served is a target with one plain drive behind a loopback listener.
type served struct {
	t       testing.TB
	flash   *memFlash
	sub     *controller.Subsystem
	target  *Target
	address string
	ended   chan error
}

func serve(t testing.TB, o TargetOptions) *served {
	t.Helper()
	s := &served{t: t, flash: newFlash(16 << 20), ended: make(chan error, 1)}
	var err error
	s.sub, err = controller.New(controller.Options{Flash: s.flash, NQN: testNQN, Serial: "S1"})
	require.NoError(t, err)
	s.start(o, "127.0.0.1:0")
	t.Cleanup(func() { s.stop() })
	return s
}

// serveSubsystem serves a drive as it is described, which may have no flash.
func serveSubsystem(t testing.TB, o controller.Options) *served {
	t.Helper()
	s := &served{t: t, ended: make(chan error, 1)}
	var err error
	s.sub, err = controller.New(o)
	require.NoError(t, err)
	s.start(TargetOptions{}, "127.0.0.1:0")
	t.Cleanup(func() { s.stop() })
	return s
}

// start serves the drive at an address.
func (s *served) start(o TargetOptions, address string) {
	s.t.Helper()
	target, err := NewTarget(o)
	require.NoError(s.t, err)
	require.NoError(s.t, target.Add(s.sub))
	l, err := net.Listen("tcp", address)
	require.NoError(s.t, err)
	s.target, s.address = target, l.Addr().String()
	go func() { s.ended <- target.Serve(l) }()
}

func (s *served) stop() {
	if s.target == nil {
		return
	}
	require.NoError(s.t, s.target.Close())
	require.ErrorIs(s.t, <-s.ended, ErrTargetClosed)
	require.Zero(s.t, s.target.countConnections())
	require.Zero(s.t, s.sub.Associations())
	s.target = nil
}

func (s *served) dial(o DialOptions) *Host {
	s.t.Helper()
	o.Address, o.Subsystem = s.address, testNQN
	if o.HostNQN == "" {
		o.HostNQN = hostNQN
	}
	h, err := Dial(context.Background(), o)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, h.Close()) })
	return h
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	x := uint32(seed) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func read(ctx context.Context, c nvme.Conn, slba uint64, b []byte) error {
	cmd := nvme.Read(1, slba, uint32(len(b)/512), 512)
	_, err := c.IO(ctx, &cmd, b)
	return err
}

func write(ctx context.Context, c nvme.Conn, slba uint64, b []byte) error {
	cmd := nvme.Write(1, slba, uint32(len(b)/512), 512, false)
	_, err := c.IO(ctx, &cmd, b)
	return err
}

// noLeaks fails when goroutines of this package are left when the test and its other cleanups are over. Call it first.
func noLeaks(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		var stacks string
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			b := make([]byte, 1<<20)
			stacks = string(b[:runtime.Stack(b, true)])
			left := 0
			for _, g := range strings.Split(stacks, "\n\n") {
				if strings.Contains(g, "nvme/tcp.") && !strings.Contains(g, "testing.tRunner") ||
					strings.Contains(g, "nvme/controller.") {
					left++
				}
			}
			if left == 0 {
				return
			}
		}
		t.Errorf("goroutines are left:\n%s", stacks)
	})
}
