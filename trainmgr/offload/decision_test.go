package offload

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMetricsAreChecked(t *testing.T) {
	good := Metrics{Gthp: 2, Lthp: 1, Pcycle: 1, Candidates: []Candidate{{Cut: All, Rthp: 1, Ocycle: 1}}}
	for name, change := range map[string]func(*Metrics){
		"negative":              func(m *Metrics) { m.Gthp = -1 },
		"not a number":          func(m *Metrics) { m.Lthp = math.NaN() },
		"infinite":              func(m *Metrics) { m.Tcycle = math.Inf(1) },
		"too large":             func(m *Metrics) { m.Cores = most * 2 },
		"too small":             func(m *Metrics) { m.Supply = 1 / most / 2 },
		"no cut":                func(m *Metrics) { m.Candidates[0].Cut = None },
		"unknown cut":           func(m *Metrics) { m.Candidates[0].Cut = All + 1 },
		"candidate's rate":      func(m *Metrics) { m.Candidates[0].Rthp = -1 },
		"overhead of nothing":   func(m *Metrics) { m.Pcycle = 0 },
		"candidate's supply":    func(m *Metrics) { m.Candidates[0].Supply = math.NaN() },
		"candidate's CPU time ": func(m *Metrics) { m.Candidates[0].Ocycle = math.Inf(1) },
	} {
		m := good
		m.Candidates = []Candidate{good.Candidates[0]}
		change(&m)
		for _, p := range []Policy{Extended, Paper, FastFlowCode} {
			_, err := Decide(p, m)
			require.ErrorIs(t, err, ErrMetrics, "%s, %v", name, p)
		}
		var table Table
		require.ErrorIs(t, table.Put(Keys{}, m, Known{}), ErrMetrics, name)
		_, err := Contenders(m)
		require.ErrorIs(t, err, ErrMetrics)
		assert.Zero(t, FreeCores(m, 1), name)
	}
	for _, v := range []float64{0, most, 1 / most} {
		m := good
		m.Cores = v
		_, err := Decide(Extended, m)
		require.NoError(t, err)
	}
	_, err := Decide(FastFlowCode+1, good)
	require.ErrorIs(t, err, ErrMetrics)
}

func TestNames(t *testing.T) {
	for c := None; c <= All; c++ {
		text, err := c.MarshalText()
		require.NoError(t, err)
		var got Cut
		require.NoError(t, got.UnmarshalText(text))
		assert.Equal(t, c, got)
	}
	var c Cut
	require.ErrorIs(t, c.UnmarshalText([]byte("half")), ErrMetrics)
	_, err := (All + 1).MarshalText()
	require.ErrorIs(t, err, ErrMetrics)
	for p := Extended; p <= FastFlowCode; p++ {
		got, err := ParsePolicy(p.String())
		require.NoError(t, err)
		assert.Equal(t, p, got)
	}
	_, err = ParsePolicy("greedy")
	require.ErrorIs(t, err, ErrMetrics)
	assert.Equal(t, "policy 9", Policy(9).String())
	assert.Equal(t, "local remote", Local.String()+" "+Remote.String())
}

// TestExtendedKnowsTheTrainersCPU compares the two policies for a trainer that is busy on the CPUs that preprocess:
// one core, a trainer of 0.5 ms CPU a row and 2000 rows/s (which is all of the core), and rows that cost 0.5 ms if
// they are preprocessed here and 0.05 ms if they arrive ready.
func TestExtendedKnowsTheTrainersCPU(t *testing.T) {
	m := Metrics{Gthp: 2000, Lthp: 1000, Pcycle: 0.5e-3, Tcycle: 0.5e-3, Cores: 1, Supply: 2000,
		Candidates: []Candidate{{Cut: All, Rthp: 1 / 0.55e-3, Ocycle: 0.05e-3, Supply: 10_000}}}
	d, err := Decide(Extended, m)
	require.NoError(t, err)
	assert.InDelta(t, 1, d.Ratio, 0, "each row that stays costs more of the trainer's CPU than one that arrives")
	assert.InDelta(t, 1/0.55e-3, d.Expected, 1e-6)
	assert.InDelta(t, 0.01, FreeCores(m, 2000), 1e-9)
	assert.InDelta(t, 0.5, FreeCores(m, 1000), 1e-9)
}

func TestExtendedSparesWorkersThatAreNotNeeded(t *testing.T) {
	m := Metrics{Gthp: 1500, Lthp: 1000, Pcycle: 1e-3, Supply: 1000, Cores: 4,
		Candidates: []Candidate{{Cut: All, Rthp: 1500, Ocycle: 1e-5, Supply: 100_000}}}
	d, err := Decide(Extended, m)
	require.NoError(t, err)
	assert.InDelta(t, 1-1000/(1.15*1500), d.Ratio, 1.0/shares, "as little as leaves 15 % of headroom")
	assert.InDelta(t, 1500, d.Expected, 1e-6)
	assert.InDelta(t, 500, d.Lower, 10)
	p, err := Decide(Paper, m)
	require.NoError(t, err)
	assert.InDelta(t, 1, p.Ratio, 0, "Algorithm 1 offloads all that it can")
}

func TestExtendedKeepsEverythingLocal(t *testing.T) {
	one := []Candidate{{Cut: All, Rthp: 50, Ocycle: 1, Supply: 50}}
	for name, m := range map[string]Metrics{
		"no stall":    {Gthp: 100, Lthp: 100, Pcycle: 1, Candidates: one},
		"no worker":   {Gthp: 100, Lthp: 10, Pcycle: 1},
		"little gain": {Gthp: 102, Lthp: 100, Pcycle: 1, Candidates: one},
		"costly arrival": {Gthp: 200, Lthp: 100, Pcycle: 0.01, Cores: 1,
			Candidates: []Candidate{{Cut: All, Rthp: 50, Ocycle: 0.02, Supply: 1000}}},
		"slow workers": {Gthp: 200, Lthp: 100, Pcycle: 0.01, Cores: 1,
			Candidates: []Candidate{{Cut: All, Rthp: 1, Ocycle: 0, Supply: 1}}},
	} {
		d, err := Decide(Extended, m)
		require.NoError(t, err, name)
		assert.False(t, d.Offload, name)
		assert.Zero(t, d.Ratio, name)
		assert.NotEmpty(t, d.Why, name)
	}
}

// TestDecisionsHoldTheirBounds draws metrics of any size and checks that every decision keeps its bounds.
func TestDecisionsHoldTheirBounds(t *testing.T) {
	number := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1e-6, 1e6), rapid.SampledFrom([]float64{most, 1 / most}))
	rapid.Check(t, func(t *rapid.T) {
		m := Metrics{Gthp: number.Draw(t, "gthp"), Lthp: number.Draw(t, "lthp"), Pcycle: number.Draw(t, "pcycle"),
			Tcycle: number.Draw(t, "tcycle"), Cores: number.Draw(t, "cores"), Supply: number.Draw(t, "supply")}
		for cut := Transforms; cut <= All; cut++ {
			c := Candidate{cut, number.Draw(t, "rthp"), number.Draw(t, "ocycle"), number.Draw(t, "supply")}
			if m.Pcycle > 0 && rapid.Bool().Draw(t, "there") {
				m.Candidates = append(m.Candidates, c)
			}
		}
		for _, p := range []Policy{Extended, Paper, FastFlowCode} {
			d, err := Decide(p, m)
			require.NoError(t, err)
			require.False(t, math.IsNaN(d.Ratio+d.Raw+d.Upper+d.Lower+d.Expected), "%v: %+v", p, d)
			require.True(t, d.Ratio >= 0 && d.Ratio <= 1, "%v", d.Ratio)
			require.Equal(t, d.Offload, d.Cut != None)
			require.NotEmpty(t, d.Why)
			require.GreaterOrEqual(t, FirstWorkers(d, 1), 0)
		}
		contenders, err := Contenders(m)
		require.NoError(t, err)
		require.NotEmpty(t, contenders)
		for _, d := range contenders {
			require.True(t, d.Ratio >= 0 && d.Ratio <= 1, "%v", d.Ratio)
		}
	})
}

// TestContendersAreTheCutsThatMayBeBest has three cuts. By the model, two of them differ by less than the model's
// error, and the third is far below.
func TestContendersAreTheCutsThatMayBeBest(t *testing.T) {
	m := Metrics{Gthp: 2000, Lthp: 200, Pcycle: 1e-3, Supply: 200, Cores: 4, Candidates: []Candidate{
		{Cut: Transforms, Rthp: 300, Ocycle: 1e-5, Supply: 300},
		{Cut: ReadAndTransforms, Rthp: 900, Ocycle: 1e-5, Supply: 900},
		{Cut: All, Rthp: 950, Ocycle: 1e-5, Supply: 950},
	}}
	contenders, err := Contenders(m)
	require.NoError(t, err)
	require.Len(t, contenders, 2)
	assert.Equal(t, All, contenders[0].Cut)
	assert.Equal(t, ReadAndTransforms, contenders[1].Cut)
	m.Candidates = m.Candidates[:1]
	m.Candidates[0].Rthp, m.Candidates[0].Supply = 1, 1
	contenders, err = Contenders(m)
	require.NoError(t, err)
	require.Len(t, contenders, 1)
	assert.Zero(t, contenders[0].Ratio, "a slow worker makes nothing at first; the tuner may try it")
	m.Candidates = nil
	contenders, err = Contenders(m)
	require.NoError(t, err)
	require.Len(t, contenders, 1)
}
