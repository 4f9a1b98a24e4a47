package regions

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/timing"
)

// small are options that measure nearly nothing.
func small(drive string) Options {
	return Options{Drive: drive, Regions: 3, Models: []string{"rm1", "d1"}, Rows: 2000, Time: time.Millisecond, Turns: 2,
		Switches: 5, HostIOShare: 50}
}

// TestRun measures everything on a drive in memory and on one in a file, with either command set.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	for _, drive := range []string{"mem:?slm=192MiB&commands=standard", "file:" + filepath.Join(dir, "d") +
		"?slm=192MiB&lba=4096&threads=2"} {
		var said []string
		o := small(drive)
		o.Progress = func(s string) { said = append(said, s) }
		r, err := Run(t.Context(), o)
		require.NoError(t, err, drive)
		assert.Equal(t, drive[:strings.Index(drive, ":")], r.Drive)
		assert.Equal(t, 3, r.Regions)
		assert.NotEmpty(t, said)
		assert.NotEmpty(t, r.Notes)

		assert.Equal(t, 5, r.Switch.Switches)
		assert.Positive(t, r.Switch.OtherJobs)
		assert.Positive(t, r.Switch.Activation.P50)
		assert.Greater(t, r.Switch.Switch.P50, r.Switch.Activation.P50*0.1)
		assert.GreaterOrEqual(t, r.Switch.Switch.Max, r.Switch.Switch.P99)

		assert.Equal(t, 2, r.Beside.Turns)
		assert.Positive(t, r.Beside.RowsPerSecond)
		assert.Positive(t, r.Beside.RowsPerSecondSwitched)
		assert.Positive(t, r.Beside.SwitchesPerSecond)

		var models [][]string
		for _, line := range r.Throughput {
			models = append(models, line.Models)
			assert.Len(t, line.RowsPerSecond, line.Regions)
			assert.Positive(t, line.Speedup)
		}
		assert.Equal(t, [][]string{{"rm1"}, {"d1"}, {"rm1", "rm1"}, {"rm1", "d1"}}, models)

		require.Len(t, r.HostIO, 5)
		for i, want := range []struct {
			share    int
			jobs, io bool
		}{{100, false, true}, {100, true, true}, {100, true, false}, {50, false, true}, {50, true, true}} {
			line := r.HostIO[i]
			assert.Equal(t, want.share, line.Share)
			assert.Equal(t, want.jobs, line.RowsPerSecond > 0, "%d", i)
			assert.Equal(t, want.io, line.Read != nil && line.Write != nil && line.IOPS > 0, "%d", i)
		}
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left, "the drive in a file is removed")
}

// TestPipelinesMixed measures MiniPipe's pipelines over one partition, two of which look ids up in the drive.
func TestPipelinesMixed(t *testing.T) {
	o := small("mem:?slm=384MiB")
	o.Models, o.Timing = []string{"d1", "d1-2", "d1-3"}, timing.NewPacing(timing.ModeImage, 600)
	require.NoError(t, o.checkOptions())
	works, err := generatePartitions(t.Context(), &o, t.TempDir())
	require.NoError(t, err)
	for i, w := range works {
		assert.Equal(t, "minipipe", w.image)
		assert.Equal(t, works[0].at, w.at)
		assert.Equal(t, i > 0, len(w.program.LookupTables) > 0, w.model)
	}
	r, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, r.Throughput, 5) // each alone, the first in two regions, and all mixed
	assert.Equal(t, o.Models, r.Throughput[4].Models)
	for _, line := range r.Throughput {
		assert.Positive(t, line.Speedup)
	}
}

// TestModelledRegions: two regions share the flash of a modelled drive, and so do not pass its rate but for the
// mini-batches that had begun before the run. A busy machine makes them slower; package timing has the exact rates.
func TestModelledRegions(t *testing.T) {
	o := small("mem:?slm=192MiB")
	o.Regions, o.Models, o.Timing = 2, []string{"rm1"}, timing.NewPacing(timing.ModeImage, 3000)
	r, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, r.Throughput, 2)
	const flash = timing.AssumedP2P / 264 // bytes of a row in the file
	for i, line := range r.Throughput {
		assert.Len(t, line.Models, i+1)
		assert.Positive(t, line.Speedup)
		assert.Less(t, line.TotalRowsPerSecond, 2*flash)
	}
	require.NotNil(t, r.Timing)
	assert.Equal(t, timing.StageMove, r.Timing.Bound)
	assert.Zero(t, r.Switch)
	assert.Empty(t, r.HostIO)
	b, err := json.Marshal(r)
	require.NoError(t, err)
	assert.NotContains(t, string(b), "switch")

	o.Timing = timing.NewPacing(timing.ModeSmartSSD, 1)
	_, err = Run(t.Context(), o)
	require.ErrorIs(t, err, ErrOptions)
	require.ErrorContains(t, err, "PreSto's designs have no regions")
}

func TestTheEndOfItsContextEndsRun(t *testing.T) {
	for _, step := range []string{"switch a region", "jobs beside", "1 regions", "0 jobs"} {
		ctx, cancel := context.WithCancel(t.Context())
		o := small("mem:?slm=96MiB")
		o.Progress = func(s string) {
			if strings.HasPrefix(s, step) {
				cancel()
			}
		}
		if step == "switch a region" {
			o.Switches = 1 << 30
		}
		_, err := Run(ctx, o)
		cancel()
		require.ErrorIs(t, err, context.Canceled, step)
	}
}

func TestOptionsThatCannotBeMeasured(t *testing.T) {
	for says, change := range map[string]func(*Options){
		"1 regions":             func(o *Options) { o.Regions = 1 },
		"8 regions":             func(o *Options) { o.Regions = 8 },
		"malformed":             func(o *Options) { o.Drive = "mem" },
		"of a drive that is":    func(o *Options) { o.Drive = "tcp://127.0.0.1:4420/nqn.2024-01.io.millrace:d0" },
		`"mem:name"`:            func(o *Options) { o.Drive = "mem:name" },
		"properties slm":        func(o *Options) { o.Drive = "mem:?size=1GiB" },
		"lba and commands":      func(o *Options) { o.Drive = "mem:?regions=3" },
		"want mem: or":          func(o *Options) { o.Drive = "mem:?size=0" },
		`"mem:?region=1"`:       func(o *Options) { o.Drive = "mem:?region=1" },
		"-1 rows":               func(o *Options) { o.Rows = -1 },
		"-1ns":                  func(o *Options) { o.Time = -1 },
		"-1 turns":              func(o *Options) { o.Turns = -1 },
		"-1 switches":           func(o *Options) { o.Switches = -1 },
		"a share of 4 %":        func(o *Options) { o.HostIOShare = 4 },
		"a share of 100 %":      func(o *Options) { o.HostIOShare = 100 },
		`"rm9"`:                 func(o *Options) { o.Models = []string{"rm9"} },
		`no workload "d2-4"`:    func(o *Options) { o.Models = []string{"d2-4"} },
		`no workload "rm1-2"`:   func(o *Options) { o.Models = []string{"rm1-2"} },
		`no workload "d2-"`:     func(o *Options) { o.Models = []string{"d2-"} },
		"model rm1 is named tw": func(o *Options) { o.Models = []string{"rm1", "rm1"} },
	} {
		o := small("mem:")
		change(&o)
		_, err := Run(t.Context(), o)
		require.ErrorIs(t, err, ErrOptions, says)
		require.ErrorContains(t, err, says)
	}
	exists := filepath.Join(t.TempDir(), "d")
	require.NoError(t, os.WriteFile(exists, []byte("mine"), 0o600))
	_, err := Run(t.Context(), small("file:"+exists))
	require.ErrorIs(t, err, os.ErrExist)
	kept, err := os.ReadFile(exists)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(kept))
}

func TestDefaults(t *testing.T) {
	var o Options
	require.NoError(t, o.checkOptions())
	assert.Equal(t, 7, o.Regions)
	assert.Equal(t, []string{"rm1", "d1"}, o.Models)
	assert.Equal(t, 10*time.Second, o.Time)
	for _, regions := range []int{2, 7} {
		o.Regions = regions
		assert.Positive(t, o.regionsBeside())
		assert.Less(t, o.regionsBeside(), regions)
	}
}

func TestQuantiles(t *testing.T) {
	var times []time.Duration
	assert.Equal(t, Quantiles{}, quantilesOf(times))
	for n := 100; n > 0; n-- {
		times = append(times, time.Duration(n)*time.Second)
	}
	assert.Equal(t, Quantiles{P50: 50, P99: 99, Max: 100}, quantilesOf(times))
	assert.Equal(t, Quantiles{P50: 7, P99: 7, Max: 7}, quantilesOf([]time.Duration{7 * time.Second}))
	assert.Equal(t, 3.0, medianOf([]float64{5, 1, 3}))
	assert.Equal(t, 2.0, medianOf([]float64{3, 1}))
	assert.Zero(t, medianOf(nil))
}

func TestTheLossIsThatOfTheMedians(t *testing.T) {
	var b BesideResult
	b.setRateLoss([]turn{{100, 99}, {200, 190}, {110, 121}})
	assert.Equal(t, 3, b.Turns)
	assert.Equal(t, 110.0, b.RowsPerSecond)
	assert.Equal(t, 121.0, b.RowsPerSecondSwitched)
	assert.InDelta(t, -0.1, b.Loss, 1e-12)
	assert.InDelta(t, -0.1, b.LeastLoss, 1e-12)
	assert.InDelta(t, 0.05, b.MostLoss, 1e-12)
}

func TestTheSpeedupOfAMix(t *testing.T) {
	line := newThroughput([]string{"a", "b", "a"}, []float64{50, 5, 75}, map[string]float64{"a": 100, "b": 20})
	assert.Equal(t, 3, line.Regions)
	assert.Equal(t, 130.0, line.TotalRowsPerSecond)
	assert.InDelta(t, 0.5+0.25+0.75, line.Speedup, 1e-12)
}

func TestTheHistogram(t *testing.T) {
	last := -1
	for ns := time.Duration(0); ns < 1<<62; ns = ns + ns/100 + 1 {
		i := stepOf(ns)
		require.GreaterOrEqual(t, i, last)
		require.GreaterOrEqual(t, longestOfStep(i), ns)
		require.LessOrEqual(t, float64(longestOfStep(i)), float64(ns)*(1+1.0/64), "%d", ns)
		if i > 0 {
			require.Less(t, longestOfStep(i-1), ns)
		}
		last = i
	}
	assert.Zero(t, stepOf(-1))
	assert.Less(t, stepOf(1<<63-1), len(histogram{}.counts))

	var a, b histogram
	assert.Nil(t, a.quantiles())
	for n := range 100 {
		h := []*histogram{&a, &b}[n%2]
		h.countTime(time.Duration(n + 1))
	}
	a.addTimesOf(&b)
	assert.EqualValues(t, 100, a.total)
	assert.Equal(t, time.Duration(50), a.quantile(0.5))
	assert.Equal(t, time.Duration(99), a.quantile(0.99))
	a.countTime(time.Second)
	assert.Equal(t, time.Second, a.quantile(1), "not the end of its step")
	assert.Equal(t, 1.0, a.quantiles().Max)
}

func TestNotesNameTheCores(t *testing.T) {
	assert.Len(t, (&Result{Regions: 2, Threads: 1, Cores: 2}).explanations(), 1)
	assert.Contains(t, (&Result{Regions: 7, Threads: 2, Cores: 8}).explanations()[1],
		"8 cores for up to 14 engine threads: rates add up over 4 regions")
}

func TestJSONKeysHaveTheirUnits(t *testing.T) {
	b, err := json.Marshal(Result{Switch: SwitchResult{Switches: 1}, Beside: BesideResult{Turns: 1},
		HostIO: []HostIO{{Read: &Quantiles{}}}, Throughput: []Throughput{{}}})
	require.NoError(t, err)
	for _, key := range []string{"cores", "p99_seconds", "loss_share", "switches_per_second", "total_rows_per_second",
		"host_io_share_percent", "iops", "drain", "switched_rows_per_second"} {
		assert.Contains(t, string(b), `"`+key+`"`)
	}
}
