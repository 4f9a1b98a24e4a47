package sizing

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/capacity"
)

// figureOf is a figure of a test.
func figureOf(v float64) Figure { return Figure{Value: v, Kind: Assumed, Source: "a test"} }

func prices(t *testing.T) *capacity.Prices {
	t.Helper()
	p, err := capacity.ReadPrices(capacity.DefaultPrices())
	require.NoError(t, err)
	return p
}

// table returns the built-in figures with some overridden, as "name: value".
func table(t *testing.T, overrides ...string) *Table {
	t.Helper()
	var b strings.Builder
	for _, o := range overrides {
		name, value, _ := strings.Cut(o, ": ")
		b.WriteString("- {name: " + name + ", value: " + value + ", kind: assumed, source: a test}\n")
	}
	figures, err := NewTable([]byte(b.String()))
	require.NoError(t, err)
	return figures
}

// rm5 is RM5 at some rows a second and bytes.
func rm5(t *testing.T, rate, bytes float64) *Job {
	t.Helper()
	j, err := JobOf("rm5", 8)
	require.NoError(t, err)
	j.T, j.Bytes = figureOf(rate), figureOf(bytes)
	return j
}

func plan(t *testing.T, j *Job, figures *Table) *Report {
	t.Helper()
	r, err := Plan(j, figures, prices(t))
	require.NoError(t, err)
	return r
}

// placement returns a placement of a report.
func placement(t *testing.T, r *Report, name string) *Placement {
	t.Helper()
	for i := range r.Placements {
		if r.Placements[i].Name == name {
			return &r.Placements[i]
		}
	}
	require.FailNow(t, "no placement "+name)
	return nil
}

// count returns what a constraint asks for.
func count(t *testing.T, p *Placement, name, resource string) int64 {
	t.Helper()
	for _, k := range p.Constraints {
		if k.Name == name && k.Resource == resource {
			return k.Count
		}
	}
	require.FailNow(t, p.Name+" has no constraint "+name+" of "+resource)
	return 0
}

// TestWorkedExample compares the plan of RM5 at 3 M rows/s and 500 TB with the arithmetic in docs/planning.md.
func TestWorkedExample(t *testing.T) {
	r := plan(t, rm5(t, 3e6, 500e12), table(t))
	in := placement(t, r, InStorage)
	for name, want := range map[string]int64{
		"capacity":        163, // 500e12 / (3.84e12 x 0.8) = 162.8
		"compute":         3,   // a row has 504 + 840 + 42 = 1386 values; 8 x 223e6 / 1386 = 1.287 M rows/s; 2.3
		"device memory":   8,   // 3e6 x 2 x (8908 + 9412) / 15.36e9 = 7.2
		"PCIe link":       8,   // 3e6 x 9412 / 3.938e9 = 7.2
		"flash bandwidth": 12,  // 3e6 x 8908 / 2.231e9 = 11.98
		"IOPS":            1,   // 3e6 x 8908 / 65536 = 407,776 reads/s; / 500,000
		"endurance":       0,
		"rebuild time":    16, // 500e12 / (0.25 x 1.5e9 x 86400) = 15.4
	} {
		assert.Equal(t, want, count(t, in, name, Drives), name)
	}
	assert.EqualValues(t, 163, in.Drives)
	assert.EqualValues(t, 5, in.Spares, "163 x 0.01 x 3 = 4.9")
	assert.EqualValues(t, 7, in.Nodes, "163 / 24 bays = 6.8; 3e6 x 9412 / 22.5e9 = 1.3")
	assert.EqualValues(t, 7, in.NICs, "one a node; 28.2 GB/s want 2.5 of them")
	assert.EqualValues(t, 3, in.TrainerNICs, "3e6 x 9412 / 11.25e9 = 2.5")
	assert.EqualValues(t, 2, r.TrainingNodes)
	assert.InDelta(t, 163*25+7*250+7*20, in.Watts, 1e-9)
	assert.InDelta(t, 168*1500+7*6000+7*800+2000, in.CapEx, 1e-9)
	assert.InDelta(t, 5965.0/1000*3*8760*0.0733, in.OpEx, 1e-6)
	assert.InDelta(t, 500e12/163/(0.25*1.5e9)/3600, in.RebuildHours, 1e-9)
	assert.Equal(t, "drives: capacity, storage nodes: drive bays, racks: rack power", in.Binds)

	loops := placement(t, r, "cpu-pool-loops")
	assert.EqualValues(t, 7, loops.Workers, "209 cores / 32")
	assert.EqualValues(t, 2, placement(t, r, "cpu-pool-kernels").Workers, "5 cores need 1; 26.7 GB/s in need 2 nodes")
	assert.EqualValues(t, 16, placement(t, r, "cpu-pool-presto").Workers, "3e6 / 6141.8 = 488.5 cores; / 32")
	assert.EqualValues(t, 4, placement(t, r, "node-card").Cards, "3e6 x 36640 / 30.4e9 = 3.6")
	assert.EqualValues(t, 30, placement(t, r, "presto-a100-pool").Cards, "11.98 / 0.4 = 29.9")
	assert.EqualValues(t, 12, placement(t, r, "presto-u280-pool").Cards, "11.98 / 1.0526 = 11.4")
	assert.False(t, placement(t, r, "trainer-loops").Fits, "209 cores beside 36 that load do not fit 2 x 56")

	assert.Equal(t, "trainer-kernels", r.Cheapest)
	assert.Contains(t, r.Verdict, "In storage loses: $313091, and trainer-kernels $141009 (55 % less).")
}

// TestPreStosCoresAndDrives: T of nine of PreSto's drives needs nine of them, and 367 cores in 12 nodes of 32.
func TestPreStosCoresAndDrives(t *testing.T) {
	drive := capacity.PreStoDrive("rm5").RowsPerSecond
	for _, c := range []struct {
		ratio  float64 // T / P of a drive
		drives int64
	}{{8, 8}, {8.001, 9}, {9, 9}, {9.001, 10}} {
		j := rm5(t, c.ratio*drive, 0)
		j.Drive = Rates{P: figureOf(drive)}
		r := plan(t, j, table(t))
		assert.Equal(t, c.drives, placement(t, r, InStorage).Drives, c.ratio)
		if c.ratio == capacity.PreStoDrives {
			pool := placement(t, r, "cpu-pool-presto")
			assert.EqualValues(t, 12, pool.Workers)
			assert.InEpsilon(t, 367, j.T.Value/j.PreStoCore.Value, 1e-9)
		}
	}
	demand, err := DemandOf("rm5", 8)
	require.NoError(t, err)
	assert.InEpsilon(t, 9*drive, demand.Value, 1e-9)
	assert.Equal(t, Assumed, demand.Kind, "the paper states no T")
}

// TestAWorseDriveNeverLooksBetter: as P falls, the placement in storage never becomes cheaper, and no other placement
// changes.
func TestAWorseDriveNeverLooksBetter(t *testing.T) {
	var before *Report
	for _, p := range []float64{400e3, 100e3, 20e3, 1e3} {
		j := rm5(t, 1e6, 500e12)
		j.Drive = Rates{P: figureOf(p)}
		r := plan(t, j, table(t))
		for i := range r.Placements {
			if before == nil {
				break
			}
			was, is := before.Placements[i], r.Placements[i]
			if is.Name == InStorage {
				assert.GreaterOrEqual(t, is.Total, was.Total, p)
				continue
			}
			assert.Equal(t, was, is, "P %v", p)
		}
		if before != nil {
			assert.LessOrEqual(t, r.Answer.Margin, before.Answer.Margin, p)
		}
		before = r
	}
	assert.EqualValues(t, 1000, placement(t, before, InStorage).Drives)
}

func TestDemandOf(t *testing.T) {
	one, err := DemandOf("dpp-rm1", 8)
	require.NoError(t, err)
	four, err := DemandOf("dpp-rm1", 32)
	require.NoError(t, err)
	assert.Equal(t, Published, one.Kind)
	assert.InEpsilon(t, 24.16*11.6e3, one.Value, 1e-9)
	assert.InEpsilon(t, 4*one.Value, four.Value, 1e-9)
	for _, c := range []struct {
		model string
		gpus  int
	}{{"rm1", 8}, {"dpp-rm1", 0}, {"rm5", 0}} {
		_, err := DemandOf(c.model, c.gpus)
		require.ErrorIs(t, err, ErrJob, c)
		assert.ErrorContains(t, err, "rm5 on 8 A100s")
	}
}

// TestEachConstraintBinds: a job is small, and one thing makes one constraint the largest.
func TestEachConstraintBinds(t *testing.T) {
	small := func() *Job {
		return &Job{Model: "rm5", T: figureOf(1e6), Bytes: figureOf(1), RowIn: figureOf(100), RowOut: figureOf(100),
			ReadSize: figureOf(65536), Drive: Rates{P: figureOf(1e9), Memory: figureOf(1e15)},
			Card: Rates{P: figureOf(1e9), Memory: figureOf(1e15)}, KernelsCore: figureOf(1e9), LoopsCore: figureOf(1e9),
			PreStoDrive: figureOf(1e9)}
	}
	for _, c := range []struct {
		name, placement, resource string
		change                    func(j *Job)
		figures                   []string
	}{
		{"capacity", InStorage, Drives, func(j *Job) { j.Bytes = figureOf(1e15) }, nil},
		{"compute", InStorage, Drives, func(j *Job) { j.Drive.P = figureOf(1e4) }, nil},
		{"device memory", InStorage, Drives, func(j *Job) { j.Drive.Memory = figureOf(1e7) }, nil},
		{"PCIe link", InStorage, Drives, func(j *Job) { j.RowOut = figureOf(1e5) }, nil},
		{"flash bandwidth", InStorage, Drives, func(j *Job) { j.RowIn = figureOf(1e5) }, nil},
		{"IOPS", InStorage, Drives, func(j *Job) { j.ReadSize = figureOf(1) }, nil},
		{"endurance", InStorage, Drives, func(j *Job) { j.Bytes, j.Retention = figureOf(1e15), 0.1 }, nil},
		{"rebuild time", InStorage, Drives, func(j *Job) { j.Bytes = figureOf(1e15) }, []string{"rebuild.hours: 0.1"}},
		{"IOPS", "node-cpu", Drives, func(j *Job) { j.Medium = HDD; j.ReadSize = figureOf(1e4) }, nil},
		{"drive bays", InStorage, Nodes, func(j *Job) { j.Bytes = figureOf(1e15) }, nil},
		{"network out", InStorage, Nodes, func(j *Job) { j.RowOut = figureOf(1e5) }, nil},
		{"compute", "node-cpu", Nodes, func(j *Job) { j.KernelsCore = figureOf(1e3) }, nil},
		{"compute", "node-card", Cards, func(j *Job) { j.Card.P = figureOf(1e4) }, nil},
		{"device memory", "node-card", Cards, func(j *Job) { j.Card.Memory = figureOf(1e7) }, nil},
		{"PCIe link", "node-card", Cards, func(j *Job) { j.RowOut = figureOf(1e5) }, nil},
		{"card slots", "node-card", Nodes, func(j *Job) { j.Card.P = figureOf(1e4) }, nil},
		{"compute", "cpu-pool-loops", Workers, func(j *Job) { j.LoopsCore = figureOf(1e3) }, nil},
		{"network in", "cpu-pool-kernels", Workers, func(j *Job) { j.RowIn = figureOf(1e5) }, nil},
		{"network out", "cpu-pool-kernels", Workers, func(j *Job) { j.RowOut = figureOf(1e5) }, nil},
		{"card slots", "presto-a100-pool", Workers, func(j *Job) { j.PreStoDrive = figureOf(1e4) }, nil},
		{"rack power", InStorage, Racks, func(j *Job) { j.Bytes = figureOf(1e16) }, nil},
		{"rack space", InStorage, Racks, func(j *Job) { j.Bytes = figureOf(1e16) }, []string{"server.units: 20"}},
		{"trainer network in", InStorage, Trainers, func(j *Job) { j.RowOut = figureOf(1e5) }, nil},
		{"trainer CPU for loading", InStorage, Trainers, func(j *Job) { j.RowOut = figureOf(1e5) },
			[]string{"trainer.load: 1e-8"}},
		{"trainer CPU with preprocessing", "trainer-kernels", Trainers, func(j *Job) { j.KernelsCore = figureOf(1e3) },
			nil},
	} {
		j := small()
		c.change(j)
		p := placement(t, plan(t, j, table(t, c.figures...)), c.placement)
		require.Empty(t, p.NoFigure)
		for _, k := range p.Constraints {
			if k.Resource == c.resource {
				assert.Equal(t, k.Name == c.name, k.Binds, "%s of %s in %s: %+v", c.name, c.resource, c.placement, k)
			}
		}
	}
}

// TestDrivesAtTheEdges counts on both sides of a full drive.
func TestDrivesAtTheEdges(t *testing.T) {
	usable := 3.84e12 * 0.8
	for _, c := range []struct {
		bytes float64
		want  int64
	}{{usable * 0.999, 12}, {usable * 12, 12}, {usable * 12.001, 13}} {
		r := plan(t, rm5(t, 3e6, c.bytes), table(t))
		assert.Equal(t, c.want, placement(t, r, InStorage).Drives, "12 feed the trainers; %v bytes", c.bytes)
	}
}

func TestGrowthAndRetention(t *testing.T) {
	j := rm5(t, 1e6, 100e12)
	j.Growth, j.TGrowth, j.Replicas, j.Retention = 1, 0.5, 2, 100
	r := plan(t, j, table(t))
	assert.InEpsilon(t, 2*800e12, r.Bytes, 1e-9, "doubled each of three years, two copies")
	assert.InEpsilon(t, 3.375e6, r.T, 1e-9)
	in := placement(t, r, InStorage)
	daily := 1600e12/365 + 1600e12/100 // growth of 100 % a year, and each 100 days everything
	assert.Equal(t, up(daily/3.84e12), count(t, in, "endurance", Drives))
}

// TestTrainingNodesBoundAPlan: the tensors of RM5 at 3 M rows/s want 2.5 interfaces.
func TestTrainingNodesBoundAPlan(t *testing.T) {
	j := rm5(t, 3e6, 1e12)
	j.Trainers = 1
	r := plan(t, j, table(t))
	assert.Empty(t, r.Cheapest)
	assert.Equal(t, "No placement fits: see why beside each.", r.Verdict)
	assert.Contains(t, placement(t, r, InStorage).Misfit, "2 training nodes are needed, and there are 1")
	j.Trainers = 2
	r = plan(t, j, table(t))
	assert.True(t, placement(t, r, InStorage).Fits)
	assert.EqualValues(t, 2, r.TrainingNodes)
}

// TestNodesWithoutFreeCores: a node whose cores all serve drives has none that preprocess.
func TestNodesWithoutFreeCores(t *testing.T) {
	_, err := Plan(rm5(t, 3e6, 1e12), table(t, "host.serve_cores: 32"), prices(t))
	require.ErrorIs(t, err, ErrJob)
	assert.ErrorContains(t, err, "compute asks for +Inf storage nodes")
	_, err = Plan(rm5(t, 3e6, 1e12), table(t, "host.serve_cores: 31"), prices(t))
	assert.NoError(t, err)
}

// TestWithoutFigures: a placement whose rate nobody knows has no counts, and says what is missing.
func TestWithoutFigures(t *testing.T) {
	j, err := JobOf("dpp-rm1", 8)
	require.NoError(t, err)
	r := plan(t, j, table(t))
	assert.Contains(t, placement(t, r, InStorage).NoFigure, "give --p")
	assert.Contains(t, placement(t, r, "node-cpu").NoFigure, "has not measured dpp-rm1")
	assert.Contains(t, r.Verdict, "In storage has no counts here.")
	dpp := placement(t, r, "cpu-pool-dpp")
	assert.EqualValues(t, 14, dpp.Workers, "24.16 workers of 18 cores are 434.9 cores; / 32 = 13.6")
	assert.EqualValues(t, 1, count(t, dpp, "trainer network in", Trainers), "16.4 GB/s")
	assert.Len(t, r.Tiers, 3)

	own, err := JobOf("ads", 8)
	require.NoError(t, err)
	own.T, own.RowIn, own.RowOut = figureOf(1e6), figureOf(100), figureOf(100)
	for _, p := range plan(t, own, table(t)).Placements {
		assert.NotEmpty(t, p.NoFigure, p.Name)
	}
}

// TestTiersByHand compares the tiers with the arithmetic in docs/planning.md.
func TestTiersByHand(t *testing.T) {
	tiers := Tiers("dpp-rm1")
	require.Len(t, tiers, 3)
	assert.InDelta(t, 8, tiers[0].Watts, 1e-9)
	assert.InDelta(t, 11.11, tiers[1].Watts, 0.005, "1 / 0.09 for the capacity; 8 / 3.26 = 2.45 for the IOPS")
	assert.InDelta(t, 0.39/0.09+0.2*8, tiers[2].Watts, 1e-9)
	assert.Equal(t, []string{"IOPS", "capacity", "capacity of SSDs, IOPS of disks"},
		[]string{tiers[0].Binds, tiers[1].Binds, tiers[2].Binds})
	assert.Empty(t, Tiers("rm5"))
}

func TestRefusedJobs(t *testing.T) {
	for name, change := range map[string]func(j *Job){
		"no T": func(j *Job) { j.T.Value = 0 }, "NaN": func(j *Job) { j.RowIn.Value = math.NaN() },
		"infinite": func(j *Job) { j.Bytes.Value = math.Inf(1) }, "negative": func(j *Job) { j.Growth = -1 },
		"copies": func(j *Job) { j.Replicas = -1 }, "medium": func(j *Job) { j.Medium = "tape" },
		"too many": func(j *Job) { j.T = figureOf(1e30) }, "no reads": func(j *Job) { j.ReadSize.Value = 0 },
		"tensors": func(j *Job) { j.RowOut.Value = -1 }, "retention": func(j *Job) { j.Retention = math.NaN() },
	} {
		j := rm5(t, 1e6, 1e12)
		change(j)
		_, err := Plan(j, table(t), prices(t))
		assert.ErrorIs(t, err, ErrJob, name)
	}
	j := rm5(t, 1e6, 1e12)
	j.T.Source = ""
	_, err := Plan(j, table(t), prices(t))
	assert.ErrorIs(t, err, ErrFigures, "a figure without a source")
}
