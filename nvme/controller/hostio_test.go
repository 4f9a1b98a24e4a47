package controller

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/hostshare"
	"github.com/millrace/millrace/nvme/cs"
)

func TestTheShareOfHostsIsBounded(t *testing.T) {
	for percent, valid := range map[int]bool{-1: false, 0: true, 1: false, 4: false, 5: true, 99: true, 100: true,
		101: false} {
		c := newStub(testSLM)
		_, err := New(Options{Flash: newFlash(testFlash), Compute: c, HostIOShare: percent})
		if valid {
			require.NoError(t, err, "%d %%", percent)
		} else {
			require.ErrorContains(t, err, "5 to 100 are possible", "%d %%", percent)
		}
	}
}

// fakeClock is a clock that stands until a test moves it.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// slowFlash is flash whose every use takes some time of a clock, and which notes how many run at once.
type slowFlash struct {
	*memFlash
	clock *fakeClock
	takes time.Duration
	sleep time.Duration // of this machine's time

	mu            sync.Mutex
	running, most int
	uses          int
}

func (f *slowFlash) use() func() {
	f.mu.Lock()
	f.uses++
	f.running++
	f.most = max(f.most, f.running)
	f.mu.Unlock()
	f.clock.move(f.takes)
	time.Sleep(f.sleep)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.running--
	}
}

func (f *slowFlash) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.uses
}

func (f *slowFlash) ReadAt(p []byte, off int64) (int, error) {
	defer f.use()()
	return f.memFlash.ReadAt(p, off)
}

func (f *slowFlash) WriteAt(p []byte, off int64) (int, error) {
	defer f.use()()
	return f.memFlash.WriteAt(p, off)
}

func (f *slowFlash) Discard(off, n int64) error {
	defer f.use()()
	return f.memFlash.Discard(off, n)
}

func (f *slowFlash) Sync() error {
	defer f.use()()
	return f.memFlash.Sync()
}

// limited is a drive with a limit of ordinary commands, on whose flash each takes ten times the burst.
type limited struct {
	*drive
	clock *fakeClock
	flash *slowFlash
}

const flashTakes = 10 * burst

// burst is what ordinary commands have saved up at most.
const burst = time.Millisecond

func newLimited(t testing.TB, percent int) *limited {
	l := &limited{clock: &fakeClock{now: time.Unix(1000, 0)}}
	l.flash = &slowFlash{memFlash: newFlash(testFlash), clock: l.clock, takes: flashTakes}
	l.drive = newDrive(t, func(o *Options) {
		o.Flash, o.HostIOShare, o.Now = l.flash, percent, l.clock.Now
		c := o.Compute.(*stubCompute)
		c.started, c.hold = make(chan struct{}, 16), make(chan struct{})
	})
	return l
}

// execute begins an execution, and returns a function that lets all executions end.
func (l *limited) execute() (end func()) {
	c := l.connect()
	b, err := (&cs.Preprocess{Ranges: []cs.Range{{Addr: reserve(l.t, c, 4096), Len: 4096}}}).Marshal()
	require.NoError(l.t, err)
	done := l.begin(context.Background(), c, cs.PreprocessCommand(uint32(len(b))), b)
	<-l.compute.started
	return func() {
		close(l.compute.hold)
		require.NoError(l.t, <-done)
	}
}

// begin sends a command and returns how it ends.
func (l *limited) begin(ctx context.Context, c nvme.Conn, cmd nvme.Command, data []byte) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := c.IO(ctx, &cmd, data)
		done <- err
	}()
	return done
}

// waiting waits until a command has its turn and waits for time.
func (l *limited) waiting() {
	require.Eventually(l.t, func() bool { return len(l.hostIO.turn) == 1 }, time.Minute, time.Millisecond)
}

// TestOrdinaryCommandsWaitWhileRegionsCompute: each command that uses the flash waits until its share of the time has
// passed, the moves of regions do not, and all pass when no region computes.
func TestOrdinaryCommandsWaitWhileRegionsCompute(t *testing.T) {
	deallocate, ranges := nvme.Deallocate(1, []nvme.DatasetRange{{SLBA: 4, Blocks: 1}})
	for name, test := range map[string]struct {
		cmd  nvme.Command
		data []byte
	}{
		"read":         {nvme.Read(1, 0, 1, 512), make([]byte, 512)},
		"compare":      {nvme.Compare(1, 0, 1, 512), make([]byte, 512)},
		"write":        {nvme.Write(1, 0, 1, 512, false), make([]byte, 512)},
		"write zeroes": {nvme.WriteZeroes(1, 0, 1, false), nil},
		"zeroes away":  {nvme.WriteZeroes(1, 0, 1, true), nil},
		"deallocate":   {deallocate, ranges},
		"flush":        {nvme.Flush(1), nil},
		"flush all":    {nvme.Flush(nvme.AllNamespaces), nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLimited(t, 50)
			c := l.connect()
			for range 3 { // no region computes
				require.NoError(t, <-l.begin(t.Context(), c, test.cmd, test.data))
			}
			end := l.execute()
			require.NoError(t, <-l.begin(t.Context(), c, test.cmd, test.data), "there is a burst")
			uses := l.flash.count()
			second := l.begin(t.Context(), c, test.cmd, test.data)
			l.waiting()
			// At half of the time, the command before makes it wait as long as that took; the burst is forgiven twice.
			l.clock.move(flashTakes - 2*burst - 4)
			assert.Equal(t, uses, l.flash.count(), "it waits for the last nanoseconds")
			assert.Len(t, l.hostIO.turn, 1)
			l.clock.move(8)
			require.NoError(t, <-second)
			assert.Equal(t, uses+1, l.flash.count())

			third := l.begin(t.Context(), c, test.cmd, test.data)
			l.waiting()
			end()
			assert.Empty(t, third, "a slice may follow")
			l.clock.move(hostshare.Linger)
			require.NoError(t, <-third)
		})
	}
}

func TestRegionsDoNotWaitForHosts(t *testing.T) {
	l := newLimited(t, 5)
	c := l.connect()
	end := l.execute()
	require.NoError(t, <-l.begin(t.Context(), c, nvme.Read(1, 0, 1, 512), make([]byte, 512)))
	waits := l.begin(t.Context(), c, nvme.Read(1, 0, 1, 512), make([]byte, 512))
	l.waiting()
	uses := l.flash.count()
	other := l.connect()
	at := reserve(t, other, 4096)
	p := cs.Preprocess{Ranges: []cs.Range{{Addr: at, Len: 512}}, Copies: []cs.Copy{{NSID: 1, NLB: 1, Dest: at}}}
	b, err := p.Marshal()
	require.NoError(t, err)
	moves := l.begin(t.Context(), other, cs.PreprocessCommand(uint32(len(b))), b)
	<-l.compute.started
	assert.Equal(t, uses+1, l.flash.count(), "its blocks have been moved")
	assert.Empty(t, waits)
	end()
	require.NoError(t, <-moves)
	l.clock.move(hostshare.Linger)
	require.NoError(t, <-waits)
}

// TestCommandsTakeTurns: of many commands one at a time is on the flash while a region computes.
func TestCommandsTakeTurns(t *testing.T) {
	l := newLimited(t, 99)
	l.flash.sleep = time.Millisecond
	c := l.connect()
	end := l.execute()
	stop := make(chan struct{})
	var clock sync.WaitGroup
	clock.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				l.clock.move(time.Millisecond)
				time.Sleep(time.Microsecond)
			}
		}
	})
	var all []<-chan error
	for range 20 {
		all = append(all, l.begin(t.Context(), c, nvme.Read(1, 0, 1, 512), make([]byte, 512)))
	}
	for _, done := range all {
		require.NoError(t, <-done)
	}
	close(stop)
	clock.Wait()
	assert.Equal(t, 1, l.flash.most)
	end()
}

// TestACommandThatWaitsEnds when its host gives up, when its namespace is removed, or when the association ends.
func TestACommandThatWaitsEnds(t *testing.T) {
	l := newLimited(t, 5)
	ids, err := l.ChangeNamespaces(nil, []Namespace{{Flash: newFlash(4096)}})
	require.NoError(t, err)
	c, other := l.connect(), l.connect()
	end := l.execute()
	require.NoError(t, <-l.begin(t.Context(), c, nvme.Read(1, 0, 1, 512), make([]byte, 512)))
	uses := l.flash.count()

	removed := l.begin(t.Context(), c, nvme.Read(ids[0], 0, 1, 512), make([]byte, 512))
	l.waiting()
	ctx, cancel := context.WithCancel(t.Context())
	behind := l.begin(ctx, c, nvme.Read(1, 0, 1, 512), make([]byte, 512))
	cancel()
	require.ErrorIs(t, <-behind, context.Canceled, "it waits for its turn")
	_, err = l.ChangeNamespaces(ids, nil)
	require.NoError(t, err)
	require.ErrorIs(t, <-removed, nvme.InvalidNamespace)

	ctx, cancel = context.WithCancel(t.Context())
	first := l.begin(ctx, other, nvme.Write(1, 0, 1, 512, false), make([]byte, 512))
	l.waiting()
	cancel()
	require.ErrorIs(t, <-first, context.Canceled, "it waits for time")
	assert.Equal(t, uses, l.flash.count(), "none of them used the flash")
	end()
}

func TestTheLogSaysTheShare(t *testing.T) {
	for percent, want := range map[int]uint8{0: 0, 100: 0, 20: 20} {
		d := newDrive(t, func(o *Options) { o.HostIOShare = percent })
		assert.Equal(t, want, vendorLog(t, d.connect()).HostIOShare, "%d %%", percent)
	}
}
