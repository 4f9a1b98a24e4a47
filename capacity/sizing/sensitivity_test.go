package sizing

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBreakEvenPrice: at the break-even price both placements cost the same.
func TestBreakEvenPrice(t *testing.T) {
	j := rm5(t, 3e6, 500e12)
	r := plan(t, j, table(t))
	tried := 0
	for _, b := range r.BreakEven {
		if b.Placement != InStorage || b.Never {
			continue
		}
		tried++
		p := prices(t)
		p.Drive.USD = b.USD
		again, err := Plan(j, table(t), p)
		require.NoError(t, err)
		assert.InEpsilon(t, placement(t, again, b.Beside).Total, placement(t, again, InStorage).Total, 1e-9, b.Beside)
	}
	assert.Equal(t, 8, tried)
	card := r.BreakEven[len(r.BreakEven)-1]
	assert.Equal(t, "node-card", card.Placement)
	assert.True(t, card.Never, "storage nodes without cards cost less than those with free cards")
	assert.Zero(t, card.USD)
}

// TestInStorageWinsWhereItsDrivesCostAsPlainOnes turns the verdict by the price alone.
func TestInStorageWinsWhereItsDrivesCostAsPlainOnes(t *testing.T) {
	p := prices(t)
	p.Drive.USD, p.Drive.USDSource = 400, "a test"
	r, err := Plan(rm5(t, 3e6, 500e12), table(t), p)
	require.NoError(t, err)
	assert.Equal(t, InStorage, r.Cheapest)
	assert.Contains(t, r.Verdict, "In storage wins: $")
}

// TestTornado: the answer moves most by the price of the drives, and each end is that of a plan with the figure there.
func TestTornado(t *testing.T) {
	j := rm5(t, 3e6, 500e12)
	r := plan(t, j, table(t))
	require.NotEmpty(t, r.Tornado)
	for i := 1; i < len(r.Tornado); i++ {
		assert.GreaterOrEqual(t, r.Tornado[i-1].Swing, r.Tornado[i].Swing)
	}
	for _, m := range r.Tornado {
		assert.NotEqual(t, "csd.dwpd", m.Figure, "no write counts here")
		if m.Figure != "csd.usd" {
			continue
		}
		p := prices(t)
		p.Drive.USD = m.Low
		again, err := Plan(j, table(t), p)
		require.NoError(t, err)
		assert.InDelta(t, placement(t, again, InStorage).Total, m.AtLow.InStorage, 1e-6)
		assert.InDelta(t, 168*(m.High-m.Low), m.Swing, 1e-6, "163 drives and 5 spares")
	}
	turns := 0
	for _, m := range r.Tornado {
		if m.Turns {
			turns++
			assert.True(t, m.AtLow.Cheapest != r.Cheapest || m.AtHigh.Cheapest != r.Cheapest, m.Figure)
		}
	}
	assert.Positive(t, turns)
}

// TestTornadoWithoutACountInStorage moves the cost of the cheapest placement.
func TestTornadoWithoutACountInStorage(t *testing.T) {
	j, err := JobOf("dpp-rm1", 8)
	require.NoError(t, err)
	r := plan(t, j, table(t))
	require.NotEmpty(t, r.Tornado)
	assert.Equal(t, "job.bytes", r.Tornado[0].Figure)
	assert.Zero(t, r.Tornado[0].AtLow.InStorage)
	assert.InDelta(t, r.Tornado[0].AtHigh.USD-r.Tornado[0].AtLow.USD, r.Tornado[0].Swing, 1e-6)
}

// TestSweep: no count falls as T grows, and a crossover lies where the cheapest placement changes.
func TestSweep(t *testing.T) {
	p := prices(t)
	p.Drive.USD = 450 // cheaper than a plain one, and slower to read
	r, err := Plan(rm5(t, 3e6, 50e12), table(t), p)
	require.NoError(t, err)
	require.Len(t, r.Sweep, 18*2+1)
	assert.InEpsilon(t, 3e6/64, r.Sweep[0].T, 1e-9)
	assert.InEpsilon(t, 3e6*4096, r.Sweep[36].T, 1e-9)
	changes := 0
	for i := 1; i < len(r.Sweep); i++ {
		before, after := r.Sweep[i-1], r.Sweep[i]
		for k := range after.Costs {
			assert.GreaterOrEqual(t, after.Costs[k].USD, before.Costs[k].USD, "%s at %v", after.Costs[k].Placement, after.T)
		}
		if before.Cheapest != after.Cheapest {
			assert.Equal(t, Crossover{after.T, before.Cheapest, after.Cheapest}, r.Crossovers[changes])
			changes++
		}
	}
	assert.Len(t, r.Crossovers, changes)
	assert.Positive(t, changes)
}

// TestOvertakings: in storage overtakes PreSto's cores as T grows, at the first T of the sweep where it costs less.
func TestOvertakings(t *testing.T) {
	r := plan(t, rm5(t, 3e6, 500e12), table(t))
	found := false
	for _, x := range r.Overtakings {
		if x.From != "cpu-pool-presto" {
			continue
		}
		found = true
		assert.Equal(t, InStorage, x.To)
		for _, p := range r.Sweep {
			if p.T < x.T {
				assert.Equal(t, x.From, cheaperOf(p, InStorage, x.From), p.T)
			} else {
				assert.Equal(t, InStorage, cheaperOf(p, InStorage, x.From), p.T)
			}
		}
	}
	assert.True(t, found)
	assert.Empty(t, cheaperOf(Point{Costs: []Cost{{"a", 1, true}, {"b", 1, true}}}, "a", "b"), "the same cost")
	assert.Empty(t, cheaperOf(Point{Costs: []Cost{{"a", 1, true}, {"b", 2, false}}}, "a", "b"), "one does not fit")
	assert.Empty(t, overtakings(nil))
}
