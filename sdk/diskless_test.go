package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/image/stock/stocktest"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
)

// openDiskless opens a drive without flash in this process.
func openDiskless(t testing.TB, slm int64, set sdk.Commands, o sdk.DeviceOptions) *sdk.Device {
	dev, err := sdk.Open(t.Context(), fmt.Sprintf("mem:?size=0&slm=%dB&commands=%s", slm, set), o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	return dev
}

// serveDiskless serves a drive without flash on loopback, and returns the drive's target, to end it.
func serveDiskless(t testing.TB, slm int64, o csd.Options) (uri string, end func()) {
	o.Diskless, o.SLMBytes, o.NQN = true, slm, "nqn.2024-01.io.millrace:diskless"
	drive, err := csd.Open(o)
	require.NoError(t, err)
	served, err := tcp.NewTarget(tcp.TargetOptions{MaxH2CData: 4096})
	require.NoError(t, err)
	require.NoError(t, served.Add(drive.Subsystem()))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- served.Serve(l) }()
	end = sync.OnceFunc(func() {
		assert.NoError(t, served.Close())
		assert.ErrorIs(t, <-done, tcp.ErrTargetClosed)
		assert.NoError(t, drive.Close())
	})
	t.Cleanup(end)
	return "tcp://" + l.Addr().String() + "/" + o.NQN, end
}

// TestDisklessDrivesAgree shows that a drive without flash, whose windows the host reads and stores, gives the bytes
// that the reference gives: with both command sets, mapped and not, over NVMe/TCP, in memories that hold everything and
// hardly one mini-batch. The drive's counters show what crossed the link.
func TestDisklessDrivesAgree(t *testing.T) {
	l := processortest.Layout{Rows: 4000, Group: 1500, Page: 2 << 10, Codec: &pq.Snappy, Seed: 11}
	data := processortest.WriteParquet(t, l)
	for kind, build := range processortest.Programs() {
		prog, schema := build()
		run := processor.Run{First: 123, Rows: int64(l.Rows) - 200, Batch: 256, Partition: processortest.Open(t, data, true)}
		want := processortest.Reference(t, prog, schema, run)
		for _, set := range []sdk.Commands{sdk.Vendor, sdk.Standard} {
			for _, slm := range []int64{16 << 20, 256 << 10} {
				for _, link := range []string{"mapped", "not mapped", "tcp"} {
					t.Run(fmt.Sprintf("%s, %s, slm %d, %s", kind, set, slm, link), func(t *testing.T) {
						var dev *sdk.Device
						if link == "tcp" {
							uri, _ := serveDiskless(t, slm, csd.Options{})
							var err error
							dev, err = sdk.Open(t.Context(), uri+"?commands="+string(set), sdk.DeviceOptions{})
							require.NoError(t, err)
							defer func() { require.NoError(t, dev.Close()) }()
						} else {
							dev = openDiskless(t, slm, set, sdk.DeviceOptions{NoMap: link != "mapped"})
						}
						before, err := dev.Counters(t.Context())
						require.NoError(t, err)
						p := startOn(t, dev, prog, schema, processor.Options{})
						run := run
						run.Partition = processortest.Open(t, data, link == "mapped") // a partition in memory, or one that is read
						processortest.RequireSame(t, want, processortest.MiniBatches(t, p, run))
						s := p.Stats()
						after, err := dev.Counters(t.Context())
						require.NoError(t, err)
						assert.Zero(t, after.FlashToDRAM.Bytes, "there is no flash")
						assert.Equal(t, s.BytesPlanned, s.BytesStored)
						stored := int64(after.HostToDRAM.Bytes - before.HostToDRAM.Bytes)
						assert.GreaterOrEqual(t, stored, s.BytesStored)
						programBytes := 64<<10 + 16*s.Slices
						assert.LessOrEqual(t, stored, s.BytesStored+programBytes, "windows and the program, no more")
						if slm > 1<<20 {
							assert.Equal(t, link == "mapped", s.BytesLent > 0)
						}
						require.NoError(t, p.Close())
					})
				}
			}
		}
	}
}

// TestDisklessText reads Criteo's text and binary rows on the host.
func TestDisklessText(t *testing.T) {
	for source, data := range map[program.Source][]byte{
		program.CriteoTSV: processortest.TextRows(1000, 0), program.CriteoBinary: processortest.BinaryRows(1000),
	} {
		prog, schema := processortest.Criteo(source, program.MalformedFail)
		part, err := partition.Open(t.Context(), "part", bytes.NewReader(data), int64(len(data)), source,
			partition.Options{Every: 100})
		require.NoError(t, err)
		run := processor.Run{Partition: part, First: 34, Rows: part.Rows - 34, Batch: 64}
		want := processortest.Reference(t, prog, schema, run)
		for _, set := range []sdk.Commands{sdk.Vendor, sdk.Standard} {
			for _, slm := range []int64{120 << 10, 4 << 20} {
				dev := openDiskless(t, slm/4096*4096, set, sdk.DeviceOptions{})
				p := startOn(t, dev, prog, schema, processor.Options{})
				processortest.RequireSame(t, want, processortest.MiniBatches(t, p, run))
				require.NoError(t, p.Close())
			}
		}
	}
}

// meeting is where the reads of a host and the executions of a drive meet, once it is open.
type meeting struct {
	open      atomic.Bool
	executing atomic.Int64
	beside    atomic.Int64 // reads during which the drive executed
	alone     atomic.Int64 // reads during which it did not
}

// meet waits until a condition holds, and reports whether it came to that.
func meet(condition func() bool) bool {
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		if condition() {
			return true
		}
	}
	return condition()
}

// metCompute is the compute device of a drive whose executions wait for a read on the host.
type metCompute struct {
	controller.Compute
	*meeting
}

// Execute implements controller.Compute.
func (m metCompute) Execute(ctx context.Context, x controller.Execution) (uint64, nvme.Status) {
	m.executing.Add(1)
	defer m.executing.Add(-1)
	if before := m.beside.Load(); m.open.Load() {
		meet(func() bool { return m.beside.Load() > before || !m.open.Load() })
	}
	return m.Compute.Execute(ctx, x)
}

// metReader is a partition's reader whose reads wait for an execution.
type metReader struct {
	io.ReaderAt
	*meeting
}

// ReadAt implements io.ReaderAt.
func (m metReader) ReadAt(b []byte, off int64) (int, error) {
	if m.open.Load() {
		if meet(func() bool { return m.executing.Load() > 0 }) {
			m.beside.Add(1)
		} else {
			m.alone.Add(1)
		}
	}
	return m.ReaderAt.ReadAt(b, off)
}

// TestStoresOverlapExecutions has executions wait for reads of the host, and reads for executions: windows of later
// slices are read while a slice executes. A host that read only between executions would have no read beside one.
func TestStoresOverlapExecutions(t *testing.T) {
	l := processortest.Layout{Rows: 40_000, Group: 40_000, Page: 2 << 10, Seed: 3}
	data := processortest.WriteParquet(t, l)
	prog, schema := processortest.Fixed()
	for _, noMap := range []bool{false, true} {
		t.Run(fmt.Sprintf("not mapped %t", noMap), func(t *testing.T) {
			var m meeting
			dev := openDiskless(t, 8<<20, sdk.Vendor, sdk.DeviceOptions{
				NoMap: noMap, WrapCompute: func(c controller.Compute) controller.Compute { return metCompute{c, &m} },
			})
			part, err := partition.Open(t.Context(), "part", metReader{bytes.NewReader(data), &m}, int64(len(data)),
				program.Parquet, partition.Options{})
			require.NoError(t, err)
			p := startOn(t, dev, prog, schema, processor.Options{Streams: 1})
			s, err := p.Open(t.Context(), processor.Run{Partition: part, Rows: part.Rows, Batch: 1000})
			require.NoError(t, err)
			for n := 0; ; n++ {
				// The first mini-batches show what pages take; the last ones have nothing behind them.
				m.open.Store(n >= 5 && n < 25)
				b, err := s.Next(t.Context())
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				b.Release()
			}
			require.NoError(t, s.Close())
			assert.GreaterOrEqual(t, m.beside.Load(), int64(20))
			assert.Less(t, m.alone.Load(), m.beside.Load())
			stats := p.Stats()
			assert.Greater(t, stats.BytesAhead, stats.BytesStored/2)
			assert.Less(t, stats.BytesReread, stats.BytesStored/10)
			require.NoError(t, p.Close())
		})
	}
}

// unreadable is a partition's reader that fails.
type unreadable struct {
	io.ReaderAt
	after atomic.Int64
	err   error
}

// ReadAt implements io.ReaderAt.
func (u *unreadable) ReadAt(b []byte, off int64) (int, error) {
	if u.after.Add(-1) < 0 {
		if u.err == nil {
			return len(b) / 2, io.EOF // the file became shorter
		}
		return 0, u.err
	}
	return u.ReaderAt.ReadAt(b, off)
}

// TestDisklessFaults: a source that fails, a drive that ends in the middle of a slice, memory that others hold, and
// commands that only flash answers.
func TestDisklessFaults(t *testing.T) {
	leaks.Check(t)
	l := processortest.Layout{Rows: 4000, Group: 4000, Page: 2 << 10, Seed: 12}
	data := processortest.WriteParquet(t, l)
	prog, schema := processortest.Jagged()
	errGone := errors.New("the source is gone")
	for name, c := range map[string]struct{ err, want error }{
		"the source fails": {errGone, errGone}, "the source is cut": {nil, io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			dev := openDiskless(t, 16<<20, sdk.Vendor, sdk.DeviceOptions{})
			u := &unreadable{ReaderAt: bytes.NewReader(data), err: c.err}
			u.after.Store(1 << 30)
			part, err := partition.Open(t.Context(), "part-0.parquet", u, int64(len(data)), program.Parquet, partition.Options{})
			require.NoError(t, err)
			u.after.Store(40)
			p := startOn(t, dev, prog, schema, processor.Options{})
			_, err = processortest.Collect(p, processor.Run{Partition: part, Rows: part.Rows, Batch: 50})
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, "part-0.parquet")
			require.NoError(t, p.Close())
		})
	}
	t.Run("the drive ends in the middle of a slice", func(t *testing.T) {
		began := make(chan struct{})
		var once sync.Once
		uri, end := serveDiskless(t, 16<<20, csd.Options{WrapCompute: func(c controller.Compute) controller.Compute {
			return entered{c, func() { once.Do(func() { close(began) }) }}
		}})
		dev, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{TCP: tcp.DialOptions{GiveUp: 200 * time.Millisecond}})
		require.NoError(t, err)
		p := startOn(t, dev, prog, schema, processor.Options{})
		failed := make(chan error, 1)
		go func() {
			run := processor.Run{Partition: processortest.Open(t, data, false), Rows: 4000, Batch: 10}
			_, err := processortest.Collect(p, run)
			failed <- err
		}()
		<-began
		end()
		err = <-failed
		require.ErrorIs(t, err, tcp.ErrLost)
		require.ErrorContains(t, err, "part-0.parquet: ")
		_ = p.Close()
		_ = dev.Close()
	})
	t.Run("its memory is full", func(t *testing.T) {
		dev := openDiskless(t, 1<<20, sdk.Vendor, sdk.DeviceOptions{})
		p := startOn(t, dev, prog, schema, processor.Options{SLM: 800 << 10})
		_, err := sdk.NewProcessor(t.Context(), dev, prog, schema, processor.Options{SLM: 800 << 10})
		var full *sdk.ReserveError
		require.ErrorAs(t, err, &full)
		require.ErrorIs(t, err, sdk.ErrSLMFull)
		assert.EqualValues(t, 800<<10, full.Bytes)
		assert.ErrorContains(t, err, "smaller mini-batches")
		require.NoError(t, p.Close())
	})
	t.Run("it has no flash", func(t *testing.T) {
		dev := openDiskless(t, 1<<20, sdk.Vendor, sdk.DeviceOptions{})
		assert.True(t, dev.Diskless())
		_, err := dev.ReadAt(make([]byte, 1), 0)
		require.ErrorIs(t, err, sdk.ErrNoFlash)
		_, err = dev.WriteAt(make([]byte, 1), 0)
		require.ErrorIs(t, err, sdk.ErrNoFlash)
		require.ErrorIs(t, dev.ReadBlocks(t.Context(), nil, 0), sdk.ErrNoFlash)
		require.ErrorIs(t, dev.Deallocate(t.Context(), 0, 0), sdk.ErrNoFlash)
		require.NoError(t, dev.Flush(t.Context()))
		for _, ns := range dev.Info().Namespaces {
			assert.NotEqual(t, uint32(cs.NamespaceNVM), ns.ID)
		}
		_, err = sdk.Open(t.Context(), "mem:?size=0", sdk.DeviceOptions{Plain: true})
		require.ErrorContains(t, err, "does not compute")
		part := processortest.Place(t, data, []partition.Extent{{Device: 0, Len: int64(len(data))}})
		p := startOn(t, dev, prog, schema, processor.Options{})
		_, err = processortest.Collect(p, processor.Run{Partition: part, Rows: part.Rows, Batch: 50})
		require.ErrorContains(t, err, "flash", "the partition is said to lie on it")
		require.NoError(t, p.Close())
	})
}

// entered gets a value when an execution begins.
type entered struct {
	controller.Compute
	tell func()
}

// Execute implements controller.Compute.
func (e entered) Execute(ctx context.Context, x controller.Execution) (uint64, nvme.Status) {
	e.tell()
	return e.Compute.Execute(ctx, x)
}

// TestDisklessDriveInAFile checks that the identity of a drive in a file, its images and its trust persist. The
// contents of the drive's memory do not.
func TestDisklessDriveInAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "card")
	uri := "file:" + path + "?size=0&slm=1MiB"
	_, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{})
	require.ErrorIs(t, err, csd.ErrNoDrive)
	dev, err := sdk.Create(t.Context(), uri, sdk.DeviceOptions{})
	require.NoError(t, err)
	first := dev.Info()
	assert.True(t, first.Diskless)
	img := stocktest.Parsed(t)
	require.NoError(t, dev.LoadImage(t.Context(), 1, img.Bytes()))
	require.NoError(t, dev.ActivateImage(t.Context(), 1))
	require.NoError(t, dev.Close())
	for _, again := range []string{uri, "file:" + path + "?slm=1MiB"} {
		dev, err = sdk.Open(t.Context(), again, sdk.DeviceOptions{})
		require.NoError(t, err)
		assert.Equal(t, first.NQN, dev.Info().NQN)
		assert.True(t, dev.Diskless())
		r, err := dev.ImageLog(t.Context())
		require.NoError(t, err)
		assert.Equal(t, img.ID, r.Slots[1].Image)
		require.NoError(t, dev.Close())
	}
	_, err = sdk.Open(t.Context(), "file:"+path+"?size=1GiB", sdk.DeviceOptions{})
	require.ErrorIs(t, err, csd.ErrGeometry)
	plain := filepath.Join(t.TempDir(), "d.flash")
	dev, err = sdk.Create(t.Context(), "file:"+plain+"?size=1MiB&slm=1MiB", sdk.DeviceOptions{})
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	_, err = sdk.Open(t.Context(), "file:"+plain+"?size=0", sdk.DeviceOptions{})
	require.ErrorIs(t, err, csd.ErrGeometry)
}
