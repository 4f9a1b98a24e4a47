package local

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock/stocktest"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr"
)

// plainRow is a row of scalars that are PLAIN and uncompressed, as the model assumes.
type plainRow struct {
	Label  int32   `parquet:"label,plain"`
	Dense0 float32 `parquet:"dense_0,plain"`
	Dense1 float32 `parquet:"dense_1,plain"`
	Cat0   int64   `parquet:"cat_0,plain"`
	Cat1   int64   `parquet:"cat_1,plain"`
	Cat2   int64   `parquet:"cat_2,plain"`
	Cat3   int64   `parquet:"cat_3,plain"`
}

const timedBatch = 2048

// plainWorkload is what a plainRow costs under plainPipeline.
func plainWorkload() timing.Workload {
	return timing.Workload{Dense: 2, Sparse: 4, Mean: 1, Fixed: true, Generated: 1, Borders: 3, IDBytes: 8}
}

func plainPipeline(t testing.TB) *pipeline.Spec {
	t.Helper()
	s, err := pipeline.Parse([]byte(`name: plain
batch: 2048
label: {column: label}
dense:
  - columns: [dense_0, dense_1]
    ops: [clamp: {min: 0}, log: {add: 1}]
sparse:
  - columns: [cat_0, cat_1, cat_2, cat_3]
    ops: [sigrid_hash: {salt: 0, max: 1000}]
generated:
  - columns: [dense_1]
    as: "b_{n}"
    ops: [bucketize: {borders: [1, 10, 100]}, sigrid_hash: {salt: 1, max: 10}]
`))
	require.NoError(t, err)
	return s
}

// plainFile writes a partition of plainRows.
func plainFile(t testing.TB, rows int, options ...pq.WriterOption) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	all := make([]plainRow, rows)
	for i := range all {
		all[i] = plainRow{int32(i & 1), rng.Float32(), 200 * rng.Float32(), rng.Int64(), rng.Int64(), rng.Int64(),
			rng.Int64()}
	}
	var b bytes.Buffer
	w := pq.NewGenericWriter[plainRow](&b, options...)
	_, err := w.Write(all)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	path := filepath.Join(t.TempDir(), "plain.parquet")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	return path
}

// timedParameters are those of an image whose hash unit binds: its lanes at a clock.
func timedParameters(clockKHz, lanes uint32) *image.Parameters {
	f := func(v uint32) image.Figure { return image.Figure{Value: v, Source: image.SourceRequested} }
	p := &image.Parameters{Clock: f(clockKHz), Buffers: f(2), Chained: f(1)}
	for _, u := range []program.Unit{log.Unit, bucketize.Unit, sigridhash.Unit, program.UnitParquet} {
		p.Units = append(p.Units, image.UnitParameters{Unit: uint16(u), Elements: f(1), Lanes: f(64), Interval: f(1),
			Latency: f(10)})
	}
	for i := range p.Units {
		if program.Unit(p.Units[i].Unit) == sigridhash.Unit {
			p.Units[i].Lanes, p.Units[i].Interval = f(lanes), f(16)
		}
	}
	return p
}

// imageWith is the stock image with parameters.
func imageWith(t testing.TB, p *image.Parameters) []byte {
	t.Helper()
	return stocktest.Changed(t, func(s *image.Spec) { s.Parameters = p }).Bytes()
}

// measuredP is P of a drive of files under a timing, as a job measures it, on the job's clock.
func measuredP(t testing.TB, file string, img []byte, set sdk.Commands, pacing *timing.Pacing,
	least time.Duration) float64 {
	t.Helper()
	c := Config{Files: source.ParseLocations(file), DriveOptions: host.DriveOptions{Engine: host.EngineDrive, Image: img,
		Commands: set,
		Threads:  1}, Manager: host.Options{MeasureTime: least, Now: pacing.Clock().Now}}
	c.Device.Timing = pacing
	m, err := Open(t.Context(), c)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	job, err := trainmgr.Submit(t.Context(), m, trainmgr.Options{Pipeline: plainPipeline(t), Order: dataset.Deterministic,
		RowsPerSecond: 1, Now: pacing.Clock().Now})
	require.NoError(t, err)
	defer func() { require.NoError(t, job.Close()) }()
	require.NoError(t, pacing.Err())
	p := job.Allocation().P
	require.Len(t, p, 1)
	for _, rate := range p {
		return rate
	}
	return 0
}

// requireP measures until P is within 3 % of the model's. A loaded machine may disturb measurements for seconds, so
// requireP measures at least five times, and for half a minute.
func requireP(t *testing.T, want float64, measure func() float64) float64 {
	t.Helper()
	var got float64
	begun := time.Now()
	for tries := 0; tries < 5 || time.Since(begun) < 30*time.Second; tries++ {
		if got = measure(); got > 0.97*want && got < 1.03*want {
			return got
		}
		t.Logf("P %.0f rows/s, the model's %.0f", got, want)
	}
	require.InEpsilon(t, want, got, 0.03)
	return got
}

// TestARunningDriveHasTheImagesP: P of a drive that runs is that of the model, and half the lanes at half the clock
// give a quarter of it. Both command sets; dilated and not.
func TestARunningDriveHasTheImagesP(t *testing.T) {
	file := plainFile(t, 8*timedBatch)
	rates := map[string]float64{}
	t.Run("rates", func(t *testing.T) {
		for _, c := range []struct {
			name         string
			clock, lanes uint32
			set          sdk.Commands
			dilate       int
			least        time.Duration
		}{
			{"whole", 4000, 2, sdk.Vendor, 4, time.Second},
			{"quarter", 2000, 1, sdk.Standard, 1, 4 * time.Second},
		} {
			params := timedParameters(c.clock, c.lanes)
			want := timing.OfImage(timing.SmartSSD(), params).Batch(plainWorkload(), timedBatch)
			stage, _ := want.Bottleneck(false)
			require.Equal(t, timing.StageHash, stage)
			img := imageWith(t, params)
			got := make(chan float64, 1)
			t.Cleanup(func() { rates[c.name] = <-got })
			t.Run(c.name, func(t *testing.T) {
				defer close(got)
				t.Parallel()
				got <- requireP(t, want.RowsPerSecond(false), func() float64 {
					pacing := timing.NewPacing(timing.ModeImage, c.dilate)
					p := measuredP(t, file, img, c.set, pacing, c.least)
					assert.Equal(t, timing.StageHash, pacing.Report().Bound)
					return p
				})
			})
		}
	})
	assert.InEpsilon(t, rates["whole"]/4, rates["quarter"], 0.06, "each within 3 % of the model's")
}

// TestARunningDriveOverlapsItsWindows: windows hold many mini-batches and are moved with the first of each, and P is
// that of the model all the same, which moves the bytes of a mini-batch while the one before is computed. Moving binds,
// and then computing, nearly as long as moving, which would otherwise wait for the windows.
func TestARunningDriveOverlapsItsWindows(t *testing.T) {
	file := plainFile(t, 256*timedBatch)
	model := timing.SmartSSD().Batch(plainWorkload(), timedBatch)
	params := timedParameters(223_000, 64)
	for i := range params.Units {
		if u := &params.Units[i]; program.Unit(u.Unit) == sigridhash.Unit {
			// 5 values a row in 3.5 cycles, and moving the 44 bytes of a row takes 3.3.
			u.Lanes.Value, u.Interval.Value = 10, 7
		}
	}
	computing := timing.OfImage(timing.SmartSSD(), params).Batch(plainWorkload(), timedBatch)
	require.Less(t, computing.Hash, 1.1*computing.Move)
	for _, c := range []struct {
		name  string
		mode  timing.Mode
		want  timing.Times
		stage string
	}{{"moving", timing.ModeSmartSSD, model, timing.StageMove}, {"computing", timing.ModeImage, computing,
		timing.StageHash}} {
		stage, _ := c.want.Bottleneck(false)
		require.Equal(t, c.stage, stage)
		for _, set := range []sdk.Commands{sdk.Vendor, sdk.Standard} {
			t.Run(c.name+" "+string(set), func(t *testing.T) {
				t.Parallel()
				requireP(t, c.want.RowsPerSecond(false), func() float64 {
					pacing := timing.NewPacing(c.mode, 2000)
					p := measuredP(t, file, imageWith(t, params), set, pacing, 2*time.Millisecond)
					assert.Equal(t, c.stage, pacing.Report().Bound)
					return p
				})
			})
		}
	}
}

// TestARunningDriveHasTheSmartSSDsP: moving bytes from flash binds, as many as the drive's own counters have. They are
// more than the rows have, since windows overlap where splits end inside pages. Pages are small, since what windows
// hold of the next split's rows does not count for the last splits.
func TestARunningDriveHasTheSmartSSDsP(t *testing.T) {
	file := plainFile(t, 128*timedBatch, pq.PageBufferSize(16<<10))
	for _, set := range []sdk.Commands{sdk.Vendor, sdk.Standard} {
		t.Run(string(set), func(t *testing.T) {
			t.Parallel()
			var got, bytesPerRow float64
			for range 5 {
				got, bytesPerRow = smartSSDRate(t, file, set)
				if p := timing.AssumedP2P / bytesPerRow; got > 0.97*p && got < 1.03*p {
					break
				}
				t.Logf("%.0f rows/s, %.1f bytes a row", got, bytesPerRow)
			}
			assert.Greater(t, bytesPerRow, plainWorkload().InBytes())
			assert.InEpsilon(t, timing.AssumedP2P/bytesPerRow, got, 0.03)
		})
	}
}

// smartSSDRate runs a job on a drive with the SmartSSD's timing. It returns the rows a second, without the job's
// beginning and end, in which the drive has fewer commands, and the bytes that the drive read of flash a row.
func smartSSDRate(t *testing.T, file string, set sdk.Commands) (rowsPerSecond, bytesPerRow float64) {
	t.Helper()
	pacing := timing.NewPacing(timing.ModeSmartSSD, 1000)
	c := Config{Files: source.ParseLocations(file),
		DriveOptions: host.DriveOptions{Engine: host.EngineDrive, Commands: set, Threads: 1}}
	c.Device.Timing = pacing
	m, err := Open(t.Context(), c)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	job, err := trainmgr.Submit(t.Context(), m, trainmgr.Options{Pipeline: plainPipeline(t), AllDrives: true,
		Now: pacing.Clock().Now})
	require.NoError(t, err)
	defer func() { require.NoError(t, job.Close()) }()
	var came []time.Time
	for mb, err := range job.MiniBatches(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, timedBatch, mb.Rows)
		came = append(came, pacing.Clock().Now())
	}
	require.Len(t, came, 128)
	require.NoError(t, pacing.Err())
	assert.Equal(t, timing.StageMove, pacing.Report().Bound)
	r, err := job.Report(t.Context())
	require.NoError(t, err)
	k := r.PerDrive[0].Counters
	const first, last = 8, 119
	return (last - first) * timedBatch / came[last].Sub(came[first]).Seconds(),
		float64(k.FlashToDRAMBytes+k.FlashLentBytes) / float64(r.Rows)
}

// TestTimingIsOfDrivesOfThisProcess: not of the CPU, of drives without flash and of drives elsewhere.
func TestTimingIsOfDrivesOfThisProcess(t *testing.T) {
	file := plainFile(t, 10)
	pacing := timing.NewPacing(timing.ModeSmartSSD, 1)
	for says, c := range map[string]Config{
		"that of a drive that computes": {Files: source.ParseLocations(file),
			DriveOptions: host.DriveOptions{Engine: host.EngineCPU}},
		"the machine's time": {Drives: []string{"tcp://127.0.0.1:1/nqn.2026-01.dev.millrace:d0"}},
		"this drive has none": {Drives: []string{"mem:?size=0"},
			DriveOptions: host.DriveOptions{Members: []string{file}}},
	} {
		c.Device.Timing = pacing
		_, err := Open(t.Context(), c)
		require.ErrorContains(t, err, says)
	}
}
