package capacity

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/host/workload"
)

func prices(t *testing.T) *Prices {
	t.Helper()
	p, err := ReadPrices(DefaultPrices())
	require.NoError(t, err)
	return p
}

func TestDPPsRM1NeedsThousandsByCapacityAndNineByTOverP(t *testing.T) {
	n, ok := DPP("dpp-rm1")
	require.True(t, ok)
	r, err := Plan(n, prices(t))
	require.NoError(t, err)
	assert.Equal(t, "capacity", r.Binds)
	assert.Greater(t, r.Drives, int64(3000))
	assert.EqualValues(t, 9, r.Busy)
	assert.Contains(t, r.Says, "9 of them at once")
}

func TestEachConstraintCanBind(t *testing.T) {
	p := prices(t)
	base := Need{Bytes: 1, T: 1000, BytesPerRow: 1, P: 1000}
	for want, change := range map[string]func(*Need){
		"capacity":       func(n *Need) { n.Bytes = 100 * p.Drive.Bytes },
		"t_over_p":       func(n *Need) { n.P = 10 },
		"read_bandwidth": func(n *Need) { n.BytesPerRow = p.Drive.Read },
	} {
		n := base
		change(&n)
		r, err := Plan(n, p)
		require.NoError(t, err)
		assert.Equal(t, want, r.Binds)
	}
}

func TestDrivesAtTheEdges(t *testing.T) {
	p := prices(t)
	usable := p.Drive.Bytes * p.Drive.Fill
	for _, c := range []struct {
		bytes float64
		want  int64
	}{{usable - 1, 1}, {usable, 1}, {usable * 1.001, 2}} {
		r, err := Plan(Need{Bytes: c.bytes, T: 1, BytesPerRow: 1, P: 1e9}, p)
		require.NoError(t, err)
		assert.Equal(t, c.want, r.Drives)
	}
}

func TestMoneyFollowsPreSto(t *testing.T) {
	p := prices(t)
	cores, err := CoresOf("rm5")
	require.NoError(t, err)
	drive := PreStoDrive("rm5").RowsPerSecond
	r, err := Plan(Need{T: PreStoDrives * drive, BytesPerRow: 100, P: drive, CPUs: []CoreRate{cores.PreSto}}, p)
	require.NoError(t, err)
	assert.EqualValues(t, 9, r.Drives)
	assert.Equal(t, 225.0, r.Watts, "PreSto VI-B: 9 x 25 W")
	require.Len(t, r.Baselines, 1)
	assert.EqualValues(t, 367, r.Baselines[0].Cores)
	assert.EqualValues(t, 12, r.Baselines[0].Nodes, "PreSto VI-B: 12 CPU server nodes")
	wantOpEx := 225.0 / 1000 * 3 * 365 * 24 * 0.0733
	assert.InDelta(t, wantOpEx, r.OpEx, 1e-6)
	assert.InEpsilon(t, 9*drive*3*365*24*3600/(r.CapEx+wantOpEx), r.RowsPerDollar, 1e-9)
	assert.Equal(t, 4800.0, r.Baselines[0].Watts)
}

// Each baseline has its own rate, and the cheapest cores beat the drives if the cores are fast enough.
func TestBaselines(t *testing.T) {
	p := prices(t)
	cpus := []CoreRate{{"slow", 20e3, "measured"}, {"fast", 500e3, "measured"}, {"unknown", 0, "no figure"}}
	r, err := Plan(Need{T: 2e6, BytesPerRow: 100, P: 250e3, CPUs: cpus}, p)
	require.NoError(t, err)
	require.EqualValues(t, 8, r.Busy)
	require.Len(t, r.Baselines, 3)
	assert.EqualValues(t, 100, r.Baselines[0].Cores, "T / 20 k: from T, not from whole drives")
	assert.Equal(t, 12.5, r.Baselines[0].DriveCores)
	assert.EqualValues(t, 4, r.Baselines[1].Cores)
	assert.EqualValues(t, 1, r.Baselines[1].Nodes)
	assert.Less(t, r.Baselines[1].USD, r.BusyUSD, "a plan in which the drives lose says so by its figures")
	assert.Equal(t, Baseline{Name: "unknown", Source: "no figure"}, r.Baselines[2])
	_, err = Plan(Need{T: 1, BytesPerRow: 1, P: 1, CPUs: []CoreRate{{"x", -1, ""}}}, p)
	assert.ErrorIs(t, err, ErrNeed)
}

func TestCoresOfModels(t *testing.T) {
	for _, model := range []string{"rm1", "rm5"} {
		c, err := CoresOf(model)
		require.NoError(t, err)
		assert.Greater(t, c.Kernels.RowsPerSecond, c.Loops.RowsPerSecond)
		assert.Contains(t, c.Loops.Source, "measured on")
		assert.Equal(t, model == "rm5", c.PreSto.RowsPerSecond > 0, "PreSto states cores beside drives for RM5 alone")
	}
	c, err := CoresOf("rm3")
	require.NoError(t, err)
	for _, r := range []CoreRate{c.Loops, c.Kernels} {
		assert.Zero(t, r.RowsPerSecond)
		assert.Contains(t, r.Source, "has not measured rm3")
	}
	assert.Contains(t, c.PreSto.Source, "for rm5 only")
	assert.Zero(t, PreStoDrive("dpp-rm1").RowsPerSecond)
}

// TestPreStosCore: nine drives that read 8,908 bytes a row at 2.231 GB/s reach 2.254 M rows/s, as 367 cores do.
func TestPreStosCore(t *testing.T) {
	c, err := CoresOf("rm5")
	require.NoError(t, err)
	assert.InDelta(t, 9*2.231e9/8908/367, c.PreSto.RowsPerSecond, 1e-6)
	assert.InDelta(t, 6141.8, c.PreSto.RowsPerSecond, 0.1)
	assert.InDelta(t, 40.67, PreStoFewestCores, 0.005)
	assert.InDelta(t, 45.875, PreStoMostCores, 1e-9)
}

// TestNoBaselineMovesWithP: with a slower drive the plan has more drives and the same cores.
func TestNoBaselineMovesWithP(t *testing.T) {
	c, err := CoresOf("rm5")
	require.NoError(t, err)
	var before *Result
	for _, p := range []float64{400e3, 20e3, 1e3} {
		r, err := Plan(Need{T: 1e6, BytesPerRow: 8908, P: p, CPUs: []CoreRate{c.PreSto, c.Loops, c.Kernels}}, prices(t))
		require.NoError(t, err)
		assert.EqualValues(t, 163, r.Baselines[0].Cores, "1e6 / 6141.8")
		for i := range r.Baselines {
			if before == nil {
				break
			}
			was, is := before.Baselines[i], r.Baselines[i]
			assert.Less(t, is.DriveCores, was.DriveCores, "a worse drive is fewer cores")
			is.DriveCores = was.DriveCores
			assert.Equal(t, was, is, "P %v", p)
			assert.Greater(t, r.BusyUSD, before.BusyUSD)
		}
		before = r
	}
}

// A P that is the read bandwidth over again is not a second constraint, and the plan says so.
func TestPlanSaysWhereTwoConstraintsAreOne(t *testing.T) {
	p := prices(t)
	says := func(n Need) string {
		r, err := Plan(n, p)
		require.NoError(t, err)
		return strings.Join(r.Assumes, "\n")
	}
	assert.Contains(t, says(Need{T: 1e6, BytesPerRow: 100}), "are one constraint")
	assert.NotContains(t, says(Need{T: 1e6, BytesPerRow: 100, P: 1e5}), "are one constraint")
}

func TestRefusals(t *testing.T) {
	p := prices(t)
	for _, n := range []Need{{}, {T: 1}, {T: -1, BytesPerRow: 1}, {T: 1, BytesPerRow: 1, Bytes: -1},
		{T: 1, BytesPerRow: 1, P: math.NaN()}, {T: math.Inf(1), BytesPerRow: 1},
		{T: 1e300, BytesPerRow: 1, P: 1e-300}, {T: 1, BytesPerRow: 1, Bytes: 1e300},
		{T: 1e300, BytesPerRow: 1, P: 1e300}, {T: 1, BytesPerRow: 1, Replicas: -1}} {
		_, err := Plan(n, p)
		assert.ErrorIs(t, err, ErrNeed, "%+v", n)
	}
	for _, y := range []string{
		"", "drive: {", "unknown: 1", strings.Replace(string(defaultPrices), "watts: 25", "watts: 0", 1),
		strings.Replace(string(defaultPrices), "fill: 0.8", "fill: 1.2", 1),
		strings.Replace(string(defaultPrices), "cpu:\n", "cpu:\n  drive_cores: 41\n", 1),
	} {
		_, err := ReadPrices([]byte(y))
		assert.ErrorIs(t, err, ErrPrices)
	}
}

func TestNeedOfAModel(t *testing.T) {
	dpp, known := NeedOf("dpp-rm1", 8)
	require.True(t, known)
	want, _ := DPP("dpp-rm1")
	assert.Equal(t, want, dpp)

	for _, model := range []string{"rm1", "rm5"} {
		wide, known := NeedOf(model, 8)
		require.True(t, known)
		narrow, _ := NeedOf(model, 4)
		assert.Greater(t, wide.BytesPerRow, narrow.BytesPerRow, "%s: ids of 8 bytes make wider rows", model)
		assert.Positive(t, wide.P)
		assert.Zero(t, wide.T)
		assert.Contains(t, wide.PSource, "model of ")
	}
	need, known := NeedOf("resnet", 8)
	assert.False(t, known)
	assert.Equal(t, Need{Model: "resnet"}, need)
}

// TestMeanShareOfExtract compares a mean with a mean: PreSto states 40.8 % over its five models. The model's mean is
// lower, since the output was fitted to RM5 alone.
func TestMeanShareOfExtract(t *testing.T) {
	mean := 0.0
	for _, model := range []string{"rm1", "rm2", "rm3", "rm4", "rm5"} {
		w, err := CostOfRow(model, 8)
		require.NoError(t, err)
		mean += timing.SmartSSD().Batch(w, workload.Batch).ExtractShare() / 5
	}
	assert.InDelta(t, 0.391, mean, 0.0005)
}

func TestNeedUnderAnImage(t *testing.T) {
	figure := func(v uint32) image.Figure { return image.Figure{Value: v, Source: image.SourceRequested} }
	unit := func(u program.Unit) image.UnitParameters {
		return image.UnitParameters{Unit: uint16(u), Elements: figure(8), Lanes: figure(1), Interval: figure(1),
			Latency: figure(0)}
	}
	m := new(image.Image)
	_, err := NeedUnderImage("rm5", 8, m)
	require.ErrorIs(t, err, ErrNeed)
	m.Spec.Parameters = &image.Parameters{Clock: figure(223000), Buffers: figure(2), Chained: figure(1),
		Units: []image.UnitParameters{unit(log.Unit), unit(bucketize.Unit), unit(sigridhash.Unit),
			unit(program.UnitParquet)}}
	got, err := NeedUnderImage("rm5", 8, m)
	require.NoError(t, err)
	want, _ := NeedOf("rm5", 8)
	assert.InEpsilon(t, want.P, got.P, 1e-9, "the parameters are those of the model without an image")
	assert.Len(t, got.Assumes, 1+3+4*4)

	m.Spec.Parameters.Buffers = figure(1)
	serial, err := NeedUnderImage("rm5", 8, m)
	require.NoError(t, err)
	assert.Less(t, serial.P, got.P)
	assert.Less(t, serial.P, timing.SmartSSDMeasuredP2P/serial.BytesPerRow,
		"without overlap the moves from flash take a part of P's time")

	m.Spec.Parameters.Units = m.Spec.Parameters.Units[1:]
	_, err = NeedUnderImage("rm5", 8, m)
	require.ErrorIs(t, err, ErrNeed)
	require.ErrorContains(t, err, "unit log")
	_, err = NeedUnderImage("dpp-rm1", 8, m)
	require.ErrorIs(t, err, ErrNeed)
}
