package review

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/capacity/sizing"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/power"
	"github.com/millrace/millrace/trainmgr"
)

// figure is a modelled figure of a test.
func figure(v float64) sizing.Figure {
	return sizing.Figure{Value: v, Kind: sizing.Modelled, Source: "a test"}
}

// plan plans 1,000,000 rows a second of 1,000 bytes in and 500 out on drives that compute 200,000 and read 4e8 bytes a
// second: 1e6 / 2e5 = 5 drives for T over P, 1e9 / 4e8 = 2.5 for the flash.
func plan() *Plan {
	return &Plan{Model: "ads", Worker: "drives", T: figure(1e6), P: figure(2e5), RowIn: figure(1000),
		RowOut: figure(500), Flash: 4e8, Memory: 1e12, Link: 1e12, Watts: figure(25)}
}

// held is a job that did what the plan says, in 10 s.
func held() *Ran {
	return &Ran{Source: "report.json", Job: "7a", Engine: "drive", Rows: 1e7, Seconds: 10, T: 1e6, P: 2e5, Drives: 5,
		Wanted: 5, Busiest: 5, RowsMade: 1e7, Moved: 1e10, Fetched: 5e9, Out: 5e9, Delivered: 5e9,
		Energy: &power.Energy{Kind: power.Measured, Seconds: 10, Joules: 1250, PerMillionRows: 125}}
}

func compare(t *testing.T, p *Plan, r *Ran) *Review {
	t.Helper()
	v, err := Compare(p, r)
	require.NoError(t, err)
	return v
}

// TestAPlanThatHeld has nothing to say but that.
func TestAPlanThatHeld(t *testing.T) {
	v := compare(t, plan(), held())
	assert.Equal(t, "The plan held: no assumption was off by more than 5 %.", v.Says)
	assert.InDelta(t, 5, v.Planned, 1e-9)
	assert.InDelta(t, 5, v.Then, 1e-9)
	assert.Len(t, v.Assumptions, 4)
	assert.Empty(t, v.NotCompared)
	assert.Equal(t, []Link{
		{"flash to device memory", 1e9, 1e9, 1000, 1000, ""}, {"device memory to host", 5e8, 5e8, 500, 500, ""},
		{"to the trainers", 5e8, 5e8, 500, 500, ""},
	}, v.Links)
	require.NotNil(t, v.Power)
	assert.InDelta(t, 125, v.Power.Planned, 1e-9, "5 drives of 25 W")
	assert.InDelta(t, 125, v.Power.Ran, 1e-9)
	assert.InDelta(t, 1, v.Power.Ratio, 1e-9)
}

// TestTheWorstComesFirst: P is half of what was planned, which makes 10 drives of 5. Rows are three times as long, so
// that the flash binds: 3e9 / 4e8 = 7.5 drives. Tensors are four times as long, and bind nothing.
func TestTheWorstComesFirst(t *testing.T) {
	r := held()
	r.P, r.Moved, r.Out, r.Unneeded = 1e5, 4e10, 2e10, 1e10
	v := compare(t, plan(), r)
	names := make([]string, len(v.Assumptions))
	then := make([]float64, len(v.Assumptions))
	for i, a := range v.Assumptions {
		names[i], then[i] = a.Name, a.Then
	}
	assert.Equal(t, []string{"P", "bytes read of a row", "bytes of a row's tensors", "T"}, names)
	assert.InDeltaSlice(t, []float64{10, 7.5, 5, 5}, then, 1e-9)
	assert.InDelta(t, 10, v.Then, 1e-9, "P binds before the flash")
	assert.Equal(t, "P was off most: 2e+05 rows/s planned (modelled), 1e+05 in the job (1/2 of it). With it the plan "+
		"wants 10 drives at once instead of 5.", v.Says)
	assert.InDelta(t, 3, v.Assumptions[1].Ratio, 1e-9, "what moved and no row needed is not part of a row")
	assert.Equal(t, "25.0 % of it needed by no row: pages that several splits read, gaps, block edges", v.Links[0].Note)
	assert.InDelta(t, 4e9, v.Links[0].Ran, 1, "it went over the link all the same")
}

// TestBothSidesOfSmall: 5 % more is not named, a little more is.
func TestBothSidesOfSmall(t *testing.T) {
	r := held()
	r.T = 1.049e6
	assert.Contains(t, compare(t, plan(), r).Says, "The plan held")
	r.T = 1.051e6
	assert.Contains(t, compare(t, plan(), r).Says, "T was off most: 1e+06 rows/s planned (modelled), 1.051e+06 in "+
		"the job (+5.1 %)")
	r = held()
	r.Out = 2e10
	assert.Contains(t, compare(t, plan(), r).Says, "No assumption moves the drives at once by more than 5 %. bytes "+
		"of a row's tensors was off most, and binds nothing: 500 B planned, 2000 in the job (4 times as much).")
}

// TestEachBound: the memory and the link bind where they are the least.
func TestEachBound(t *testing.T) {
	p := plan()
	p.Memory = 3e8
	assert.InDelta(t, 1e6*3000/3e8, p.atOnce(), 1e-9)
	p.Link = 1e7
	assert.InDelta(t, 1e6*500/1e7, p.atOnce(), 1e-9)
	cores := &Plan{Worker: "cores", T: figure(1e6), P: figure(1e4), RowIn: figure(1), RowOut: figure(1)}
	assert.InDelta(t, 100, cores.atOnce(), 1e-9, "a core has no flash")
}

// TestWhatIsNotKnown is listed, and not compared.
func TestWhatIsNotKnown(t *testing.T) {
	v := compare(t, plan(), &Ran{Source: "the control plane", Job: "7a", P: 2e5, T: 1e6, Drives: 5})
	assert.Len(t, v.Assumptions, 2)
	assert.Empty(t, v.Links)
	assert.Nil(t, v.Power)
	assert.Len(t, v.NotCompared, 5)
	p, r := plan(), held()
	p.OwnT, p.Watts, r.Fetched = true, sizing.Figure{}, 0
	v = compare(t, p, r)
	assert.Equal(t, []string{"T: the plan has the job's own; give --t, or --gpus, as it was planned",
		"device memory to host: tensors were lent where they lie, and not copied",
		"watts: the plan has none of drives"},
		v.NotCompared)
	v = compare(t, p, &Ran{})
	assert.Contains(t, v.Says, "Nothing can be compared")
	p.OwnP = true
	v = compare(t, p, r)
	assert.Contains(t, v.NotCompared[1], "P: the plan has none of drives, and takes the job's own; give --p-from")
	p.P.Value = 0
	_, err := Compare(p, r)
	assert.ErrorIs(t, err, ErrReport)
}

func TestStall(t *testing.T) {
	r := held()
	r.Stall, r.Foretold = 2, 1
	assert.Equal(t, Stall{Foretold: 1, Ran: 2, Share: 0.2}, compare(t, plan(), r).Stall)
}

// report is a job's report, as train prints it, after a change.
func report(t *testing.T, change func(r *trainmgr.Report)) []byte {
	t.Helper()
	r := &trainmgr.Report{Job: "7a", Rows: 100, Bytes: 900, ElapsedSeconds: 2, TRowsPerSecond: 60, PRowsPerSecond: 30,
		Drives: 2, DrivesWanted: 3, DrivesBusiest: 2, StallSeconds: 0.5, ExpectedStallSecond: 0.25,
		PerDrive: []api.DriveReport{
			{Name: "a", Engine: "drive (vendor)", CountedRows: 60, BytesMoved: 600, BytesUnneeded: 60, BytesOut: 540,
				BytesFetched: 5},
			{Name: "b", Engine: "drive (vendor)", CountedRows: 40, BytesMoved: 400, BytesOut: 360},
		}}
	change(r)
	b, err := json.Marshal(struct {
		*trainmgr.Report
		Energy *power.Energy `json:"energy"`
	}{r, &power.Energy{Joules: 7}})
	require.NoError(t, err)
	return b
}

func TestRanOf(t *testing.T) {
	r, err := RanOf(report(t, func(*trainmgr.Report) {}), "report.json")
	require.NoError(t, err)
	assert.Equal(t, &Ran{Source: "report.json", Job: "7a", Engine: "drive", Rows: 100, Seconds: 2, T: 60, P: 30,
		Drives: 2, Wanted: 3, Busiest: 2, RowsMade: 100, Moved: 1000, Unneeded: 60, Fetched: 5, Out: 900,
		Delivered: 900, Stall: 0.5, Foretold: 0.25, Energy: &power.Energy{Joules: 7}}, r)
	r, err = RanOf(report(t, func(r *trainmgr.Report) { r.PerDrive[1].Engine = "cpu" }), "x")
	require.NoError(t, err)
	assert.Empty(t, r.Engine, "the drives differ")
	for says, change := range map[string]func(r *trainmgr.Report){
		"names no job":              func(r *trainmgr.Report) { r.Job = "" },
		"has trained 0 rows":        func(r *trainmgr.Report) { r.Rows = 0 },
		"in 0 s":                    func(r *trainmgr.Report) { r.ElapsedSeconds = 0 },
		"T are -1":                  func(r *trainmgr.Report) { r.TRowsPerSecond = -1 },
		"bytes moved and needed":    func(r *trainmgr.Report) { r.PerDrive[0].BytesUnneeded = math.MaxInt32 },
		"drives at the busiest are": func(r *trainmgr.Report) { r.DrivesBusiest = -1 },
	} {
		_, err := RanOf(report(t, change), "report.json")
		require.ErrorIs(t, err, ErrReport, says)
		assert.ErrorContains(t, err, says)
		assert.ErrorContains(t, err, "report.json")
	}
	_, err = RanOf([]byte("[]"), "bench.json")
	assert.ErrorContains(t, err, "bench.json is not what millrace train --output json writes")
}

// FuzzRanOf: a document is refused, or has figures that compare.
func FuzzRanOf(f *testing.F) {
	f.Add([]byte(`{"job":"7a","rows":1,"elapsed_seconds":1,"per_drive":[{"engine":"cpu","rows":1,"moved_bytes":3}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := RanOf(b, "x")
		if err != nil {
			require.ErrorIs(t, err, ErrReport)
			return
		}
		_, err = Compare(plan(), r)
		require.NoError(t, err)
	})
}
