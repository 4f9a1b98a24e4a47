package controller

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// fill sends n executions that hold, and returns when all have begun.
func fill(t testing.TB, d *drive, c nvme.Conn, n int) *sync.WaitGroup {
	t.Helper()
	d.compute.started, d.compute.hold = make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { preprocess(t, c, cs.Preprocess{}, nvme.Success) })
	}
	for range n {
		<-d.compute.started
	}
	return &wg
}

func TestAFullQueueWaitsAndAdminDoesNot(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	wg := fill(t, d, c, MaxDepth)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := nvme.Flush(1)
	waits := make(chan error)
	go func() {
		_, err := c.IO(ctx, &cmd, nil)
		waits <- err
	}()
	for range 100 {
		admin(t, c, nvme.KeepAlive(), nil, nvme.Success)
		admin(t, c, nvme.GetFeature(nvme.FeatureQueues), nil, nvme.Success)
	}
	select {
	case err := <-waits:
		t.Fatal("a command more than the queue holds did not wait:", err)
	default:
	}
	cancel()
	assert.ErrorIs(t, <-waits, context.Canceled)
	close(d.compute.hold)
	wg.Wait()
	io(t, c, nvme.Flush(1), nil, nvme.Success)
}

func TestCancelledContextEndsACommandThatWaits(t *testing.T) {
	d := newDrive(t)
	d.compute.started, d.compute.hold = make(chan struct{}), make(chan struct{})
	c := d.connect()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	p := cs.Preprocess{}
	b, _ := p.Marshal()
	go func() {
		cmd := cs.PreprocessCommand(uint32(len(b)))
		_, err := c.IO(ctx, &cmd, b)
		done <- err
	}()
	<-d.compute.started
	cancel()
	assert.ErrorIs(t, <-done, context.Canceled)
	cmd := nvme.Flush(1)
	_, err := c.IO(ctx, &cmd, nil)
	assert.ErrorIs(t, err, context.Canceled)
}

func TestCancelledContextEndsAMove(t *testing.T) {
	var broken brokenParts
	d := newDrive(t, func(o *Options) {
		o.Flash = broken.wrapFlash(o.Flash)
		o.Compute.(*stubCompute).slm = make([]byte, testFlash)
	})
	c := d.connect()
	reserve(t, c, testFlash)
	broken.delayReads(time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := cs.Preprocess{Copies: []cs.Copy{{NSID: 1, NLB: testFlash / 512}}}
	b, _ := p.Marshal()
	cmd := cs.PreprocessCommand(uint32(len(b)))
	l := c.(mapped).local
	out := l.c.Execute(ctx, localQueue, &cmd, b)
	assert.ErrorIs(t, out.Status(), nvme.CommandAborted)
	assert.Zero(t, d.Counters().SectorsRead)
}

func TestBufferMustHaveTheDescribedLength(t *testing.T) {
	c := newDrive(t).connect()
	io(t, c, nvme.Read(1, 0, 1, 512), make([]byte, 511), nvme.InvalidSGLLength)
	io(t, c, nvme.Read(1, 0, 1, 512), nil, nvme.InvalidSGLLength)
	io(t, c, nvme.Flush(1), make([]byte, 1), nvme.InvalidSGLLength)
}

func TestTheCallersCommandIsNotTouched(t *testing.T) {
	c := newDrive(t).connect()
	cmd := nvme.Flush(1)
	cmd.SetCID(0xbeef)
	before := cmd
	_, err := c.IO(context.Background(), &cmd, nil)
	require.NoError(t, err)
	assert.Equal(t, before, cmd)
}

func TestErrorsNameTheCommand(t *testing.T) {
	c := newDrive(t).connect()
	cmd := nvme.Read(1, 1<<40, 1, 512)
	_, err := c.IO(context.Background(), &cmd, make([]byte, 512))
	assert.EqualError(t, err, "Read on namespace 1: nvme status: address out of range (0/80h, do not retry)")
	cmd = nvme.New(0xfd, 1)
	_, err = c.IO(context.Background(), &cmd, nil)
	assert.EqualError(t, err, "command fdh on namespace 1: nvme status: invalid opcode (0/01h, do not retry)")
	var st nvme.Status
	require.ErrorAs(t, err, &st)
	assert.True(t, st.DNR())
}

func TestADriveThatDoesNotMap(t *testing.T) {
	d := newDrive(t, func(o *Options) { o.NoMap = true })
	_, ok := d.connect().(nvme.Mapper)
	assert.False(t, ok)
}

func TestManyHostsAtOnce(t *testing.T) {
	d := newDrive(t, withAccessesThatEnd(t))
	var wg sync.WaitGroup
	for h := range 4 {
		wg.Go(func() {
			for range 5 {
				c, err := Local(d.Subsystem, HostID{NQN: "many"})
				if !assert.NoError(t, err) {
					return
				}
				at := reserve(t, c, 64<<10)
				want := pattern(64<<10, byte(h))
				io(t, c, cs.Store(at, 64<<10), want, nvme.Success)
				var in sync.WaitGroup
				for w := range uint64(4) {
					in.Go(func() {
						base := at + w*16<<10
						for i := range uint64(10) {
							preprocess(t, c, cs.Preprocess{
								Ranges: []cs.Range{{Addr: base, Len: 1024}, {Addr: base + 8192, Len: 1024}, {Addr: base + 9216, Len: 8}},
								Copies: []cs.Copy{{NSID: 1, NLB: 2, SLBA: i, Dest: base + 4096}},
							}, nvme.Success)
						}
					})
				}
				in.Wait()
				got := make([]byte, 1024)
				io(t, c, cs.Fetch(at+1024, 1024), got, nvme.Success)
				assert.Equal(t, want[1024:2048], got)
				assert.NoError(t, c.Close())
			}
		})
	}
	wg.Wait()
	assert.Zero(t, d.slm.Reserved())
}
