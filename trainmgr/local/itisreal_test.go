package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/nvme/faults"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
)

// TestDrivesCountWhatWasPlanned: over a whole job the vendor log's bytes are those of the windows that the host
// planned, whichever command set moved them; both move the same, and the reports say the same rows.
func TestDrivesCountWhatWasPlanned(t *testing.T) {
	d := newDataSet(t, 300, 2000, 1203, 800, 650)
	held := [][]int{{0}, {1, 2}}
	var first []api.DriveReport
	for _, query := range []string{"", "?commands=standard"} {
		for _, measured := range []bool{false, true} {
			c := Config{Drives: d.onFiles(t, held, 512, query), DriveOptions: host.DriveOptions{Streams: 1}}
			c.Manager.MeasureTime = time.Millisecond
			o := trainmgr.Options{Pipeline: pipelineOf(t, "lists"), Shuffle: dataset.ShuffleNone, AllDrives: !measured}
			if measured {
				o.RowsPerSecond = 1e9
			}
			w := run(t, c, o, nil)
			require.Len(t, w.report.PerDrive, 2)
			for i, r := range w.report.PerDrive {
				rows := int64(0)
				for _, p := range held[i] {
					rows += int64(d.rows[p])
				}
				assert.Equal(t, rows, r.Rows)
				require.NotNil(t, r.Counters)
				assert.EqualValues(t, r.Rows, r.Counters.Rows)
				assert.Positive(t, r.BytesMoved)
				assert.EqualValues(t, r.BytesMoved, r.Counters.FlashToDRAMBytes+r.Counters.FlashLentBytes, "%s, measured %t",
					query, measured)
				assert.Positive(t, r.Counters.BusyNanoseconds)
				if first != nil && !measured { // the values learned while measuring P make other windows
					assert.Equal(t, first[i].BytesMoved, r.BytesMoved)
					assert.Equal(t, first[i].BytesOut, r.BytesOut)
				}
			}
			if first == nil {
				first = w.report.PerDrive
			}
		}
	}
}

// TestBytesMovedAreTheColumnsThatThePipelineReads: the bytes moved less those that no row needed are exactly the column
// chunks that the pipeline names. Splits that end inside row groups read the pages there twice, which are not needed.
func TestBytesMovedAreTheColumnsThatThePipelineReads(t *testing.T) {
	d := newDataSet(t, 300, 2000, 1203)
	f, err := format.ReadFooter(bytes.NewReader(d.parts[0]), int64(len(d.parts[0])))
	require.NoError(t, err)
	read := map[string][]string{"lists": {"label", "int_0", "int_1", "cat_0", "cat_1", "list_0"},
		"fixed": {"label", "int_0", "cat_0", "cat_1"}}
	for name, columns := range read {
		want := int64(0)
		for g := range f.RowGroups {
			for i := range f.Leaves {
				for _, c := range columns {
					if f.Leaves[i].Name == c {
						want += f.RowGroups[g].Columns[i].Compressed
					}
				}
			}
		}
		for _, place := range []string{"file", "files"} {
			unneeded := map[int]int64{}
			for _, splitBatches := range []int{1000, 1} {
				s := setup{place: place, drives: 1, lba: 512, engine: "vendor", streams: 1}
				c := s.config(t, d, nil)
				w := run(t, c, trainmgr.Options{Pipeline: pipelineOf(t, name), Shuffle: dataset.ShuffleNone,
					SplitBatches: splitBatches, AllDrives: true}, nil)
				r := w.report.PerDrive[0]
				assert.Equal(t, want, r.BytesMoved-r.BytesUnneeded, "%s on %s", name, place)
				unneeded[splitBatches] = r.BytesUnneeded
			}
			assert.Greater(t, unneeded[1], unneeded[1000]+want/10, "pages that two splits read")
		}
	}
}

// TestTensorsThatAreNotLentAreFetched: the counter of bytes to the host covers every tensor byte if the drive lends no
// views, and is 0 if it lends them.
func TestTensorsThatAreNotLentAreFetched(t *testing.T) {
	d := newDataSet(t, 300, 2000, 900)
	for _, copied := range []bool{false, true} {
		s := setup{place: "file", drives: 1, lba: 4096, engine: "vendor", streams: 1, copied: copied}
		w := run(t, s.config(t, d, nil), s.options(t, trainmgr.Options{}, "fixed"), nil)
		sent := w.report.PerDrive[0].Counters.DRAMToHostBytes
		if copied {
			assert.GreaterOrEqual(t, sent, uint64(w.report.Bytes))
		} else {
			assert.Zero(t, sent)
		}
	}
}

// flip is a compute device that changes one byte of the input between the moves and the execution.
type flip struct {
	controller.Compute
	at func(input []byte) int
}

func (f flip) Execute(ctx context.Context, x controller.Execution) (uint64, nvme.Status) {
	in := x.Ranges[target.RangeInput]
	b := f.SLM()[in.Addr : in.Addr+in.Len]
	if i := f.at(b); i >= 0 {
		b[i] ^= 1
	}
	return f.Compute.Execute(ctx, x)
}

// TestAFlippedByteOfDeviceMemoryIsSeen changes bytes of the drive's memory, and so shows that the tensors come from
// this memory. A changed byte under a page's checksum ends the job with an error that names the place.
func TestAFlippedByteOfDeviceMemoryIsSeen(t *testing.T) {
	d := newDataSet(t, 300, 2000, 900)
	for _, query := range []string{"?slm=8MiB", "?slm=8MiB&commands=standard"} {
		held := [][]int{{0}}
		c := Config{Drives: d.onFiles(t, held, 512, query)}
		c.Device.WrapCompute = func(inner controller.Compute) controller.Compute {
			return flip{inner, func(in []byte) int { return len(bytes.TrimRight(in, "\x00")) / 2 }}
		}
		m, err := Open(t.Context(), c)
		require.NoError(t, err)
		j, err := trainmgr.Submit(t.Context(), m, trainmgr.Options{Pipeline: pipelineOf(t, "lists"), AllDrives: true})
		require.NoError(t, err)
		var last error
		for _, err := range j.MiniBatches(t.Context()) {
			last = err
		}
		var bad *partition.DataError
		require.ErrorAs(t, last, &bad)
		assert.Equal(t, "part-00000.parquet", bad.Partition)
		assert.Contains(t, pipelines["lists"], bad.Column)
		assert.GreaterOrEqual(t, bad.RowGroup, 0)
		assert.GreaterOrEqual(t, bad.Page, int64(0))
		require.NoError(t, j.Close())
		require.NoError(t, m.Close())
	}
}

// knownP is a storage whose drives' P is known.
type knownP struct {
	*host.Manager
	p float64
}

func (k knownP) Measure(context.Context, dataset.Digest, string) (api.Measurement, error) {
	return api.Measurement{RowsPerSecond: k.p}, nil
}

// TestATrainerTwiceAsFastTakesMoreDrives: T doubles, so do the drives; and where there are no more, a stall is
// foretold.
func TestATrainerTwiceAsFastTakesMoreDrives(t *testing.T) {
	d := newDataSet(t, 170, 1000, 400, 400, 400, 400)
	m, err := Open(t.Context(), Config{Files: source.ParseLocations(d.files(t)...), Spread: 4,
		DriveOptions: host.DriveOptions{SLM: 8 << 20}})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	report := func(speed float64) *trainmgr.Report {
		j, err := trainmgr.Submit(t.Context(), knownP{m, 1000}, trainmgr.Options{Pipeline: pipelineOf(t, "lists"),
			RowsPerSecond: speed})
		require.NoError(t, err)
		defer func() { require.NoError(t, j.Close()) }()
		for _, err := range j.MiniBatches(t.Context()) {
			require.NoError(t, err)
		}
		r, err := j.Report(t.Context())
		require.NoError(t, err)
		return r
	}
	for _, c := range []struct {
		speed          float64
		drives, wanted int
		stall          float64
	}{{900, 1, 1, 0}, {1800, 2, 2, 0}, {3600, 4, 4, 0}, {8000, 4, 8, 0.4 - 0.2}} {
		r := report(c.speed)
		assert.Equal(t, c.speed, r.TRowsPerSecond)
		assert.Equal(t, 1000.0, r.PRowsPerSecond)
		assert.Equal(t, c.drives, r.Drives)
		assert.Equal(t, c.wanted, r.DrivesWanted)
		assert.LessOrEqual(t, r.DrivesBusiest, c.drives)
		assert.InDelta(t, c.stall, r.ExpectedStallSecond, 1e-9)
		assert.EqualValues(t, 1600, r.Rows)
	}
}

// TestAStoppedTrainerStopsTheDrives: with the trainer standing still the drives' own counters do too, after no more
// than the queue and what every stream has in hand.
func TestAStoppedTrainerStopsTheDrives(t *testing.T) {
	d := newDataSet(t, 500, 2000, 20_000, 20_000)
	const batch, streams = 50, 2
	for _, query := range []string{"?slm=32MiB", "?slm=32MiB&commands=standard"} {
		m, err := Open(t.Context(), Config{Drives: d.onFiles(t, [][]int{{0}, {1}}, 512, query),
			DriveOptions: host.DriveOptions{Streams: streams}})
		require.NoError(t, err)
		j, err := trainmgr.Submit(t.Context(), m, trainmgr.Options{Pipeline: pipelineOf(t, "fixed"), AllDrives: true,
			QueueBytes: 10_000})
		require.NoError(t, err)
		executed := func() (programs, rows uint64) {
			list, err := m.Report(t.Context(), j.Digest())
			require.NoError(t, err)
			for _, r := range list {
				programs, rows = programs+r.Counters.Programs, rows+r.Counters.Rows
			}
			return programs, rows
		}
		taken := 0
		for mb, err := range j.MiniBatches(t.Context()) {
			require.NoError(t, err)
			if taken++; taken < 20 {
				continue
			}
			// The trainer stops here. Drives that go on would run again and again: once nothing runs for a while they
			// stand still. On a busy machine a drive may be late, so that a run after one pause says nothing.
			still, since := uint64(0), time.Now()
			for begun := time.Now(); time.Since(since) < 250*time.Millisecond; time.Sleep(5 * time.Millisecond) {
				require.Less(t, time.Since(begun), time.Minute, "the drives go on")
				if n, _ := executed(); n != still {
					still, since = n, time.Now()
				}
			}
			_, rows := executed()
			// A stream has a mini-batch that waits for room in the queue, another behind it, and a third in the making if
			// the output buffers allow it.
			most := taken + 1 + int(10_000/mb.Bytes()) + 2*streams*3
			assert.LessOrEqual(t, int(rows), most*batch, "of %d rows", d.total())
			break
		}
		require.NoError(t, j.Close())
		require.NoError(t, m.Close())
	}
}

// failure runs a job that must fail and returns its error; nothing may be left behind.
func failure(t *testing.T, c Config, o trainmgr.Options, opened func()) error {
	t.Helper()
	leaks.Check(t)
	m, err := Open(context.Background(), c)
	require.NoError(t, err)
	opened()
	j, err := trainmgr.Submit(context.Background(), m, o)
	if err == nil {
		for mb, merr := range j.MiniBatches(context.Background()) {
			if err = merr; err == nil {
				require.NoError(t, mb.Validate())
			}
		}
		assert.NoError(t, j.Close())
	}
	assert.NoError(t, m.Close())
	require.Error(t, err)
	return err
}

// newInjector makes an injector that injects nothing yet.
func newInjector(t *testing.T) *faults.Injector {
	t.Helper()
	in, err := faults.New(new(faults.Script), faults.Options{})
	require.NoError(t, err)
	return in
}

// failFrom makes 100 executions fail after the first skip ones. A single failure might only meet a mini-batch that was
// made ahead and is not requested, as when a measurement ends, and then the job would rightly go on.
func failFrom(t *testing.T, in *faults.Injector, skip int64, status nvme.Status, result uint64) {
	t.Helper()
	rule := faults.Execute{Status: status, Result: result, Count: faults.Count{After: skip, Times: 100}}
	require.NoError(t, in.Replace(&faults.Script{Execute: []faults.Execute{rule}}))
}

// TestFaultsOfADriveEndTheJob: reads that fail and executions that fail, on either command set, while P is measured
// and later. The error is typed and names the drive and the partition.
func TestFaultsOfADriveEndTheJob(t *testing.T) {
	d := newDataSet(t, 300, 2000, 1203, 800)
	held := [][]int{{0}, {1}}
	worn, err := faults.Parse([]byte("fail: [{operation: read, lba: 32}]"))
	require.NoError(t, err)
	for _, commands := range []sdk.Commands{sdk.Vendor, sdk.Standard} {
		for _, measured := range []bool{false, true} {
			o := trainmgr.Options{Pipeline: pipelineOf(t, "lists"), AllDrives: !measured}
			if measured {
				o.RowsPerSecond = 1e9
			}
			query := "?slm=32MiB&commands=" + string(commands)
			t.Run(fmt.Sprintf("a read fails, %s, measured %t", commands, measured), func(t *testing.T) {
				c := Config{Drives: d.onFiles(t, held, 512, query)}
				in := newInjector(t)
				c.Device.WrapFlash = in.Flash
				c.Manager.MeasureTime = time.Millisecond
				err := failure(t, c, o, func() { assert.NoError(t, in.Replace(worn)) })
				assert.ErrorIs(t, err, nvme.UnrecoveredReadError)
				assert.ErrorContains(t, err, ".flash")
				assert.ErrorContains(t, err, "part-0000")
			})
			for _, skip := range []int{0, 3} {
				name := fmt.Sprintf("an execution fails, %s, measured %t, after %d", commands, measured, skip)
				t.Run(name, func(t *testing.T) {
					c := Config{Drives: d.onFiles(t, held, 512, query)}
					in := newInjector(t)
					c.Device.WrapCompute = in.Compute
					c.Manager.MeasureTime = time.Millisecond
					err := failure(t, c, o, func() { failFrom(t, in, int64(skip), nvme.InternalError, 0) })
					assert.ErrorIs(t, err, nvme.InternalError)
					assert.ErrorContains(t, err, ".flash")
					assert.ErrorContains(t, err, "part-0000")
				})
			}
			t.Run(fmt.Sprintf("an execution ends in a fault, %s, measured %t", commands, measured), func(t *testing.T) {
				c := Config{Drives: d.onFiles(t, held, 512, query)}
				in := newInjector(t)
				c.Device.WrapCompute = in.Compute
				c.Manager.MeasureTime = time.Millisecond
				err := failure(t, c, o, func() { failFrom(t, in, 1, cs.StatusProgramFault, uint64(program.BadSlice)) })
				assert.ErrorIs(t, err, target.ErrEngine)
				assert.ErrorContains(t, err, "part-0000")
			})
		}
	}
}

// TestAFaultDoesNotPoisonTheDrive: after a job that failed, the same manager runs the next one.
func TestAFaultDoesNotPoisonTheDrive(t *testing.T) {
	d := newDataSet(t, 300, 2000, 1203, 800)
	in := newInjector(t)
	c := Config{Drives: d.onFiles(t, [][]int{{0}, {1}}, 512, "")}
	c.Device.WrapCompute = in.Compute
	m, err := Open(t.Context(), c)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	o := trainmgr.Options{Pipeline: pipelineOf(t, "lists"), AllDrives: true}
	want := runOn(t, m, o, nil)
	fifth := faults.Execute{Status: nvme.InternalError, Count: faults.Count{After: 4, Times: 1}}
	require.NoError(t, in.Replace(&faults.Script{Execute: []faults.Execute{fifth}}))
	j, err := trainmgr.Submit(t.Context(), m, o)
	require.NoError(t, err)
	var last error
	for _, err := range j.MiniBatches(t.Context()) {
		last = err
	}
	require.ErrorIs(t, last, nvme.InternalError)
	token := j.Checkpoint()
	require.NoError(t, j.Close())
	assert.Equal(t, want.sums, runOn(t, m, o, nil).sums)
	o.Resume = &token
	rest := runOn(t, m, o, nil)
	for name, sum := range rest.sums {
		assert.Equal(t, want.sums[name], sum)
	}
	assert.Less(t, len(rest.sums), len(want.sums)+1)
}

// TestADriveWithoutComputationIsUsedToo: the node's CPU makes the same mini-batches over a plain drive, and the report
// names the CPU as the engine. Where the engine must be the drive, Open returns ErrNoCompute.
func TestADriveWithoutComputationIsUsedToo(t *testing.T) {
	d := newDataSet(t, 300, 2000, 700, 300)
	uris := d.onFiles(t, [][]int{{0}, {1}}, 4096, "")
	o := trainmgr.Options{Pipeline: pipelineOf(t, "lists"), AllDrives: true}
	want := run(t, Config{Drives: uris}, o, nil)
	c := Config{Drives: uris}
	c.Device.Plain = true
	got := run(t, c, o, nil)
	assert.Equal(t, want.sums, got.sums)
	for i := range uris {
		assert.Equal(t, "drive (vendor)", want.report.PerDrive[i].Engine)
		assert.Equal(t, "cpu", got.report.PerDrive[i].Engine)
		assert.Nil(t, got.report.PerDrive[i].Counters)
		assert.Positive(t, got.report.PerDrive[i].BytesMoved)
	}
	c.Engine = host.EngineDrive
	_, err := Open(t.Context(), c)
	require.ErrorIs(t, err, sdk.ErrNoCompute)
	assert.ErrorContains(t, err, "--engine cpu")
}

func TestConfigRefusals(t *testing.T) {
	d := newDataSet(t, 300, 2000, 100)
	files := d.files(t)
	for _, c := range []Config{{}, {Drives: []string{"mem:"}, Files: source.ParseLocations(files...)},
		{Files: source.ParseLocations(files...), Spread: 2},
		{Files: source.ParseLocations(files...), Spread: -1}} {
		_, err := Open(t.Context(), c)
		require.ErrorIs(t, err, ErrConfig)
	}
	// Drives that were opened before the refusal are closed again.
	uri := d.onFiles(t, [][]int{{0}}, 512, "")[0]
	_, err := Open(t.Context(), Config{Drives: []string{uri, "file:" + t.TempDir() + "/none"}})
	require.Error(t, err)
	m, err := Open(t.Context(), Config{Drives: []string{uri}})
	require.NoError(t, err)
	require.NoError(t, m.Close())
}

// TestSeveralJobsAtOnce: jobs of one manager that share the drives' memory do not disturb each other.
func TestSeveralJobsAtOnce(t *testing.T) {
	d := newDataSet(t, 300, 2000, 700, 300)
	c := Config{Drives: d.memory(t, d.deal(rand.New(rand.NewPCG(1, 2)), 2), ""),
		DriveOptions: host.DriveOptions{SLM: 8 << 20}}
	m, err := Open(t.Context(), c)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	names := []string{"lists", "fixed"}
	alone := map[string]work{}
	for _, n := range names {
		alone[n] = runOn(t, m, trainmgr.Options{Pipeline: pipelineOf(t, n), AllDrives: true}, nil)
	}
	type result struct {
		name string
		w    work
		err  error
	}
	results := make(chan result)
	for _, n := range names {
		spec := pipelineOf(t, n)
		go func() {
			w, err := together(m, spec)
			results <- result{n, w, err}
		}()
	}
	for range names {
		r := <-results
		require.NoError(t, r.err)
		assert.Equal(t, alone[r.name].sums, r.w.sums)
	}
}

// together runs a job beside others.
func together(m *host.Manager, spec *pipeline.Spec) (w work, err error) {
	ctx := context.Background()
	j, err := trainmgr.Submit(ctx, m, trainmgr.Options{Pipeline: spec, AllDrives: true})
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	w.sums = map[tensor.Name]uint32{}
	for mb, err := range j.MiniBatches(ctx) {
		if err != nil {
			return w, err
		}
		w.sums[mb.Name] = sum(mb)
	}
	return w, nil
}
