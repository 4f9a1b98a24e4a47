package capacity

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	r, err := Plan(Need{T: 9 * 337e3, BytesPerRow: 100, P: 337e3}, p)
	require.NoError(t, err)
	assert.EqualValues(t, 9, r.Drives)
	assert.Equal(t, 225.0, r.Watts, "PreSto VI-B: 9 x 25 W")
	assert.EqualValues(t, 369, r.Cores)
	assert.EqualValues(t, 12, r.Nodes, "PreSto VI-B: 12 CPU server nodes")
	wantOpEx := 225.0 / 1000 * 3 * 365 * 24 * 0.0733
	assert.InDelta(t, wantOpEx, r.OpEx, 1e-6)
	assert.InEpsilon(t, 9*337e3*3*365*24*3600/(r.CapEx+wantOpEx), r.RowsPerDollar, 1e-9)
	assert.Greater(t, r.Compute.CostRatio, 1.0)
	assert.Greater(t, r.Compute.EnergyRatio, 1.0)
}

func TestRefusals(t *testing.T) {
	p := prices(t)
	for _, n := range []Need{{}, {T: 1}, {T: -1, BytesPerRow: 1}, {T: 1, BytesPerRow: 1, Bytes: -1}, {T: 1, BytesPerRow: 1, P: math.NaN()}, {T: math.Inf(1), BytesPerRow: 1},
		{T: 1e300, BytesPerRow: 1, P: 1e-300}, {T: 1, BytesPerRow: 1, Bytes: 1e300}, {T: 1e300, BytesPerRow: 1, P: 1e300}, {T: 1, BytesPerRow: 1, Replicas: -1}} {
		_, err := Plan(n, p)
		assert.ErrorIs(t, err, ErrNeed, "%+v", n)
	}
	for _, y := range []string{"", "drive: {", "unknown: 1", strings.Replace(string(defaultPrices), "watts: 25", "watts: 0", 1), strings.Replace(string(defaultPrices), "fill: 0.8", "fill: 1.2", 1)} {
		_, err := ReadPrices([]byte(y))
		assert.ErrorIs(t, err, ErrPrices)
	}
}

func TestParseBytes(t *testing.T) {
	for s, want := range map[string]float64{"500TB": 500e12, "11.95PB": 11.95e15, "1.5PiB": 1.5 * (1 << 50), "7": 7, "7B": 7, "1e3 GB": 1e12} {
		got, err := ParseBytes(s)
		require.NoError(t, err, s)
		assert.Equal(t, want, got)
	}
	for _, s := range []string{"", "TB", "-1TB", "1XB", "infTB", "nan"} {
		_, err := ParseBytes(s)
		assert.ErrorIs(t, err, ErrNeed, s)
	}
}
