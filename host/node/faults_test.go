package node

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
)

// state is a drive's state as the node tells it.
func (f *fixture) state(drive string) string {
	f.t.Helper()
	r, err := f.node.Describe(context.Background(), &apiv1.DescribeRequest{})
	require.NoError(f.t, err)
	for _, d := range r.Status.Drives {
		if d.Name == drive {
			return d.State
		}
	}
	return "unknown"
}

// TestADriveThatIsKilledComesBack checks that requests for a killed drive fail with unavailable and a time to come
// again, that other drives serve on, and that the drive is opened again and gives the same bytes when its target is
// back.
func TestADriveThatIsKilledComesBack(t *testing.T) {
	files := content(t)
	wire := serveDrive(t, fill(t, "file", files))
	f := start(t, nil, wire.uri(), fill(t, "mem", files))
	j := f.prepare(dataset.Options{SplitBatches: 8})
	want := truth(t, files, j)
	assert.True(t, bytes.Equal(want[0], f.frame(j, "d0", 0, 8)))
	wire.kill()
	f.wait("the drive to be missed", func() bool { return strings.HasPrefix(f.state("d0"), "failed: ") })
	status, b, h := f.get(f.link(j, "d0", 1, 8))
	assert.Equal(t, http.StatusServiceUnavailable, status, "%s", b)
	assert.Contains(t, string(b), `"code":"unavailable"`)
	assert.Equal(t, "1", h.Get("Retry-After"))
	assert.True(t, bytes.Equal(want[1], f.frame(j, "d1", 1, 8)))
	_, err := f.node.Measure(t.Context(), &apiv1.MeasureRequest{Job: j.Digest[:], Drive: "d0"})
	require.ErrorContains(t, err, "unavailable")
	wire.start()
	f.wait("the drive to come back", func() bool { return f.state("d0") == "ready" })
	var last []byte
	f.wait("it to serve again", func() bool {
		status, b, _, err := f.try(t.Context(), f.link(j, "d0", 1, 8))
		last = b
		return err == nil && status == http.StatusOK
	})
	assert.True(t, bytes.Equal(want[1], last))
	_, b, _ = f.get(f.base + "/metrics")
	assert.Contains(t, string(b), `millrace_device_opens_total{drive="d1"} 1`)
}

// TestAnAssociationThatEnds checks that jobs get their programs again when the drive is there but has forgotten what it
// held for this host.
func TestAnAssociationThatEnds(t *testing.T) {
	files := content(t)
	wire := serveDrive(t, fill(t, "file", files))
	f := start(t, nil, wire.uri())
	j := f.prepare(dataset.Options{SplitBatches: 30})
	want := truth(t, files, j)
	assert.True(t, bytes.Equal(want[0], f.frame(j, "d0", 0, 1)))
	wire.kill()
	wire.start()
	var last []byte
	f.wait("it to serve again", func() bool {
		status, b, _, err := f.try(t.Context(), f.link(j, "d0", 1, 2))
		require.NoError(t, err)
		last = b
		return status == http.StatusOK
	})
	assert.True(t, bytes.Equal(want[1], last))
}

// fallen is flash with a bug: it panics while the test sets its flag.
type fallen struct {
	controller.Flash
	now *atomic.Bool
}

func (f fallen) ReadAt(p []byte, off int64) (int, error) {
	if f.now.Load() {
		panic("a bug in a drive")
	}
	return f.Flash.ReadAt(p, off)
}

// TestAPanicDoesNotEndTheNode has a drive in the node's own process panic, and a worker. The split fails with an error,
// and the node and the drive serve on.
func TestAPanicDoesNotEndTheNode(t *testing.T) {
	drivePanics := func(now *atomic.Bool) Options {
		return Options{Device: func(_ string, o *sdk.DeviceOptions) {
			o.WrapFlash = func(flash controller.Flash) controller.Flash { return fallen{flash, now} }
		}}
	}
	workerPanics := func(now *atomic.Bool) Options {
		return Options{wrap: func(open splits.Opener) splits.Opener {
			return func(ctx context.Context, o api.SplitRequest) (api.Stream, error) {
				if now.CompareAndSwap(true, false) {
					panic("a bug")
				}
				return open(ctx, o)
			}
		}}
	}
	for name, c := range map[string]struct {
		drive   string // kind of the drive's URI
		options func(now *atomic.Bool) Options
		refused func(t *testing.T, status int, answer string)
	}{
		"a drive": {"file", drivePanics, func(t *testing.T, status int, _ string) {
			assert.NotEqual(t, http.StatusOK, status)
		}},
		"a worker": {"mem", workerPanics, func(t *testing.T, status int, answer string) {
			assert.Equal(t, http.StatusServiceUnavailable, status)
			assert.Contains(t, answer, "the worker: the program panicked: a bug")
			assert.NotContains(t, answer, "goroutine", "the stack is for the log")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			files := content(t)
			now := new(atomic.Bool)
			conf := DefaultConfig()
			conf.Name, conf.Listen = "n0", []string{"127.0.0.1:0"}
			conf.Drives = []DriveConfig{{Name: "d0", URI: fill(t, c.drive, files)}}
			f := startWith(t, conf, c.options(now))
			j := f.prepare(dataset.Options{SplitBatches: 8})
			want := truth(t, files, j)
			now.Store(true)
			status, b, _ := f.get(f.link(j, "d0", 0, 8))
			c.refused(t, status, string(b))
			now.Store(false)
			f.wait("it to serve again", func() bool {
				status, b, _, err := f.try(t.Context(), f.link(j, "d0", 0, 8))
				return err == nil && status == http.StatusOK && bytes.Equal(want[0], b)
			})
		})
	}
}

// TestBadDataIsDataLoss checks that a partition with damaged pages fails where they are read, every time, and that the
// drive stays ready.
func TestBadDataIsDataLoss(t *testing.T) {
	b := nodetest.Partition(t, 1, 400)
	for i := 10; i < 200; i++ {
		b[i] ^= 0x5a
	}
	f := start(t, nil, fill(t, "mem", map[string][]byte{"a.parquet": b, "b.parquet": nodetest.Partition(t, 2, 400)}))
	j := f.prepare(dataset.Options{Shuffle: dataset.ShuffleNone})
	for range 2 {
		status, b, _ := f.get(f.link(j, "d0", 0, 8))
		assert.Equal(t, http.StatusInternalServerError, status)
		assert.Contains(t, string(b), `"code":"data_loss"`)
		assert.Contains(t, string(b), "a.parquet")
	}
	f.frame(j, "d0", 8, 16)
	assert.Equal(t, "ready", f.state("d0"))
}

// TestAClientThatDies checks that a mini-batch that a dead client did not take is kept for the next one, and that a
// split whose clients are all gone is closed long before an idle one.
func TestAClientThatDies(t *testing.T) {
	files := content(t)
	f := start(t, func(c *Config) {
		c.Runs.Abandoned, c.Runs.Idle = Duration(30*time.Millisecond),
			Duration(time.Hour)
	}, fill(t, "mem", files))
	j := f.prepare(dataset.Options{SplitBatches: 8})
	want := truth(t, files, j)
	addr := strings.TrimPrefix(f.base, "http://")
	for range 3 {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		_, err = io.WriteString(c, "GET "+f.link(j, "d0", 0, 8)[len(f.base):]+" HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		f.wait("it to be served", func() bool { return f.splits.Running("") == 1 })
		require.NoError(t, c.Close())
		f.wait("the run to be closed",
			func() bool { return f.splits.Running("") == 0 && f.splits.Holding() == splits.Held{} })
	}
	assert.True(t, bytes.Equal(want[0], f.frame(j, "d0", 0, 8)))
	time.Sleep(100 * time.Millisecond) // three times as long as an abandoned run lives; a longer pause changes nothing
	assert.Equal(t, 1, f.splits.Running(""), "its client is connected, and may think")
	f.client.CloseIdleConnections()
	f.wait("the run to be closed", func() bool { return f.splits.Running("") == 0 })
}

func TestAnIdleRunIsClosed(t *testing.T) {
	files := content(t)
	f := start(t, func(c *Config) { c.Runs.Idle = Duration(30 * time.Millisecond) }, fill(t, "mem", files))
	j := f.prepare(dataset.Options{SplitBatches: 8})
	want := truth(t, files, j)
	f.frame(j, "d0", 0, 8)
	f.wait("the run to be closed", func() bool { return f.splits.Running("") == 0 })
	assert.Zero(t, f.splits.Holding())
	assert.True(t, bytes.Equal(want[1], f.frame(j, "d0", 1, 8)), "it goes on where it was")
}

// TestASlowClientIsCutOff checks that a client that takes nothing is cut off, and that the mini-batch is given to the
// next one.
func TestASlowClientIsCutOff(t *testing.T) {
	// A mini-batch that no socket buffers hold.
	files := map[string][]byte{"a.parquet": nodetest.Partition(t, 1, 1000)}
	wide := strings.Replace(nodetest.Document, "columns: [cat_0, list_0]", "columns: [cat_0, list_0]", 1) + "generated:\n"
	for i := range 400 {
		wide += "  - columns: [int_0]\n    as: \"b" +
			string(rune('a'+i/26/26)) + string(rune('a'+i/26%26)) + string(rune('a'+i%26)) +
			"\"\n    ops: [fill_null: 0, bucketize: {borders: [1, 10, 100]}, sigrid_hash: {salt: 1, max: 10}]\n"
	}
	f := start(t, func(c *Config) { c.Runs.WriteTime = Duration(50 * time.Millisecond) }, fill(t, "file", files))
	j := f.describeJob(wide, dataset.Options{Batch: 1000})
	_, err := f.node.Prepare(t.Context(), j.PrepareRequest)
	require.NoError(t, err)
	c, err := net.Dial("tcp", strings.TrimPrefix(f.base, "http://"))
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.(*net.TCPConn).SetReadBuffer(4<<10))
	_, err = io.WriteString(c, "GET "+f.link(j, "d0", 0, 1)[len(f.base):]+" HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	f.wait("it to be cut off", func() bool {
		status, b, _, err := f.try(t.Context(), f.base+"/metrics")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		return strings.Contains(string(b), "millrace_node_cut_total 1")
	})
	f.wait("one who takes it", func() bool {
		status, b, _, err := f.try(t.Context(), f.link(j, "d0", 0, 1))
		return err == nil && status == http.StatusOK && len(b) > 1<<20
	})
}

// TestDraining checks that new splits are refused, that the open one goes on, and that Drain returns when it has ended.
func TestDraining(t *testing.T) {
	files := content(t)
	f := start(t, nil, fill(t, "mem", files), fill(t, "file", files))
	j := f.prepare(dataset.Options{SplitBatches: 6})
	want := truth(t, files, j)
	f.frame(j, "d0", 0, 6)
	_, err := f.node.Drain(t.Context(), &apiv1.DrainRequest{Drive: "d1", Drain: true})
	require.NoError(t, err)
	assert.Equal(t, "draining", f.state("d1"))
	status, b, h := f.get(f.link(j, "d1", 0, 6))
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, string(b), "draining")
	assert.Equal(t, "1", h.Get("Retry-After"))
	_, err = f.node.Drain(t.Context(), &apiv1.DrainRequest{Drive: "d1"})
	require.NoError(t, err)
	f.frame(j, "d1", 6, 7)

	bound, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, f.Drain(bound), context.Canceled)
	status, b, _ = f.get(f.base + "/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Equal(t, "draining\n", string(b))
	status, _, _ = f.get(f.link(j, "d0", 6, 12))
	assert.Equal(t, http.StatusServiceUnavailable, status)
	f.client.CloseIdleConnections()
	done := make(chan error, 1)
	go func() { done <- f.Drain(t.Context()) }()
	for n := uint64(1); n < 6; n++ {
		assert.True(t, bytes.Equal(want[n], f.frame(j, "d0", n, 6)))
	}
	r, err := f.node.Drain(t.Context(), &apiv1.DrainRequest{Drain: true})
	require.NoError(t, err)
	f.splits.RefuseDrive("d1", splits.ErrStopped) // its client asks no more
	f.splits.RefuseDrive("d1", nil)
	require.NoError(t, <-done)
	assert.LessOrEqual(t, r.Running, int32(1))
	_, err = f.node.Drain(t.Context(), &apiv1.DrainRequest{})
	require.NoError(t, err)
	f.frame(j, "d0", 6, 7)
}

// TestFinishingAJobUnderItsClients checks that responses that are being written are cut off, that waiting requests are
// refused, and that nothing is read from memory that is no longer the job's.
func TestFinishingAJobUnderItsClients(t *testing.T) {
	files := content(t)
	f := start(t, nil, fill(t, "mem", files))
	for range 5 {
		j := f.prepare(dataset.Options{SplitBatches: 30})
		want := truth(t, files, j)
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for i := range uint64(4) {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for n := i; ; n = (n + 4) % uint64(len(want)) {
					status, b, _, err := f.try(context.Background(), f.link(j, "d0", n, n+4))
					if err == nil && status == http.StatusOK {
						assert.True(t, bytes.Equal(want[n], b))
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			}()
		}
		f.wait("work", func() bool { return f.splits.Running("") > 0 })
		_, err := f.node.Finish(t.Context(), &apiv1.FinishRequest{Job: j.Digest[:]})
		require.NoError(t, err)
		close(stop)
		wg.Wait()
		status, _, _ := f.get(f.link(j, "d0", 0, 1))
		assert.Equal(t, http.StatusNotFound, status)
		assert.Zero(t, f.splits.Holding())
		_, err = f.node.Finish(t.Context(), &apiv1.FinishRequest{Job: j.Digest[:]})
		require.NoError(t, err, "finishing one that is unknown is fine")
	}
}

// TestBusyIsToldToComeAgain checks that a drive whose streams all have work refuses another split after a while.
func TestBusyIsToldToComeAgain(t *testing.T) {
	files := content(t)
	f := start(t, func(c *Config) {
		c.Buffers = BufferConfig{Node: 1, Job: 1}
		c.Runs.BusyWait = Duration(20 * time.Millisecond)
		c.Drives[0].Streams = 1
	}, fill(t, "mem", files))
	j := f.prepare(dataset.Options{SplitBatches: 6})
	f.frame(j, "d0", 0, 6)
	status, b, h := f.get(f.link(j, "d0", 6, 12))
	assert.Equal(t, http.StatusServiceUnavailable, status, "%s", b)
	assert.Contains(t, string(b), `"code":"resource_exhausted"`)
	assert.Equal(t, "1", h.Get("Retry-After"))
	for n := uint64(1); n < 6; n++ {
		f.frame(j, "d0", n, 6)
	}
	f.wait("a place", func() bool {
		status, _, _, err := f.try(t.Context(), f.link(j, "d0", 6, 12))
		return err == nil && status == http.StatusOK
	})
}

// TestADriveThatIsNotThere checks that a drive that is away at the start is tried again and again while the node serves
// the others.
func TestADriveThatIsNotThere(t *testing.T) {
	files := content(t)
	wire := serveDrive(t, fill(t, "file", files))
	uri := wire.uri()
	wire.kill()
	c := DefaultConfig()
	c.Name, c.Listen = "n0", []string{"127.0.0.1:0"}
	c.Drives = []DriveConfig{{Name: "d0", URI: uri}, {Name: "d1", URI: fill(t, "mem", files)}}
	f := startWith(t, c, Options{Device: func(string, *sdk.DeviceOptions) {}})
	assert.Contains(t, f.state("d0"), "failed: ")
	j := f.prepare(dataset.Options{SplitBatches: 6})
	f.frame(j, "d1", 0, 1)
	wire.start()
	f.wait("it to come", func() bool { return f.state("d0") == "ready" })
	f.frame(j, "d0", 0, 1)
}

func TestRequestRate(t *testing.T) {
	l := newRequestLimit(2)
	now := time.Unix(100, 0)
	assert.True(t, l.allow("a", now))
	assert.True(t, l.allow("a", now))
	assert.False(t, l.allow("a", now))
	assert.True(t, l.allow("b", now), "each peer has its own")
	assert.True(t, l.allow("a", now.Add(time.Second/2)))
	assert.False(t, l.allow("a", now.Add(time.Second/2)))
	for i := range 3 * maxPeers {
		l.allow(string(rune(i))+"x", now)
	}
	assert.LessOrEqual(t, len(l.buckets), maxPeers+1)
	assert.True(t, newRequestLimit(0).allow("a", now))

	f := start(t, func(c *Config) { c.Limits.RequestsPerSecond = 0.001 })
	f.get(f.base + "/readyz")
	status, b, _ := f.get(f.base + "/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, string(b), "too many requests")
}

func TestConnectionsAreBounded(t *testing.T) {
	f := start(t, func(c *Config) { c.Limits.Connections = 1 })
	status, _, _ := f.get(f.base + "/readyz")
	require.Equal(t, http.StatusOK, status)
	c, err := net.Dial("tcp", strings.TrimPrefix(f.base, "http://"))
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err, "closed at once")
	require.NoError(t, c.Close())
	status, _, _ = f.get(f.base + "/readyz")
	require.Equal(t, http.StatusOK, status, "whoever is connected is not disturbed")
	f.client.CloseIdleConnections()
	f.wait("room", func() bool {
		status, _, _, err := f.try(t.Context(), f.base+"/readyz")
		return err == nil && status == http.StatusOK
	})
}
