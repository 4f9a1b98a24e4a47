package sizing

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOverriddenFigures(t *testing.T) {
	built, err := NewTable(nil)
	require.NoError(t, err)
	own, err := NewTable([]byte("- {name: ssd.usd, value: 420, low: 400, high: 500, kind: measured, source: our invoice}"))
	require.NoError(t, err)
	assert.Equal(t, Figure{Name: "ssd.usd", Value: 420, Unit: "$", Low: 400, High: 500, Kind: Measured,
		Source: "our invoice"}, own.figures["ssd.usd"])
	assert.Equal(t, built.order, own.order)
	assert.Equal(t, built.figures["ssd.read"], own.figures["ssd.read"])
	assert.InDelta(t, 500, built.figures["ssd.usd"].Value, 0)
}

func TestRefusedFigures(t *testing.T) {
	for _, c := range []struct{ document, says string }{
		{"nonsense: {", "figures:"},
		{"- {name: no.such}", "no.such is 0"},
		{"- {name: no.such, value: 1, kind: assumed, source: x}", "--print-figures lists them"},
		{"- {name: ssd.usd, value: 1, kind: assumed, source: x, unit: EUR}", "want $"},
		{"- {name: ssd.usd, value: -1, kind: assumed, source: x}", "want a number above 0"},
		{"- {name: ssd.usd, value: .inf, kind: assumed, source: x}", "want a number above 0"},
		{"- {name: ssd.usd, value: 1, kind: guessed, source: x}", "kind"},
		{"- {name: ssd.usd, value: 1, kind: assumed}", "no source"},
		{"- {name: ssd.usd, value: 1, low: 2, high: 3, kind: assumed, source: x}", "that holds the value"},
		{"- {name: ssd.usd, value: 1, high: 3, kind: assumed, source: x}", "range above 0"},
		{"- {name: nic.usable, value: 1.01, kind: assumed, source: x}", "want at most 1"},
		{"- {name: nic.usable, value: 0.5, low: 0.4, high: 1.1, kind: assumed, source: x}", "want at most 1"},
		{strings.Repeat("- {name: ssd.usd, value: 1, kind: assumed, source: x}\n", 2), "twice"},
		{"- {name: ssd.usd, worth: 1}", "worth"},
	} {
		_, err := NewTable([]byte(c.document))
		require.ErrorIs(t, err, ErrFigures, c.document)
		assert.ErrorContains(t, err, c.says, c.document)
	}
	_, err := NewTable([]byte("- {name: nic.usable, value: 1, kind: assumed, source: x}"))
	assert.NoError(t, err)
}

// TestEveryBuiltInFigureIsUsed: a figure of the table that no plan uses says nothing.
func TestEveryBuiltInFigureIsUsed(t *testing.T) {
	j := rm5(t, 3e6, 500e12)
	j.Retention = 100
	used := make(map[string]bool)
	for _, m := range []Medium{SSD, HDD} {
		j.Medium = m
		for _, f := range plan(t, j, table(t)).Figures {
			used[f.Name] = true
		}
	}
	for _, name := range table(t).order {
		assert.True(t, used[name], name)
	}
	assert.Equal(t, string(builtin), string(DefaultFigures()))
	assert.True(t, strings.HasPrefix(string(builtin), "# What the placements"))
}

// TestKindsAreCounted: every figure of a report has a source and a kind, and the counts add up.
func TestKindsAreCounted(t *testing.T) {
	r := plan(t, rm5(t, 3e6, 500e12), table(t))
	sum := 0
	counts := make(map[Kind]int)
	for _, k := range r.Kinds {
		sum += k.Count
		counts[k.Kind] = k.Count
	}
	assert.Equal(t, len(r.Figures), sum)
	assert.Equal(t, 2, counts[Measured], "TorchArrow's loops and our kernels")
	for _, f := range r.Figures {
		assert.NotEmpty(t, f.Source, f.Name)
		assert.NotEmpty(t, f.Unit, f.Name)
		counts[f.Kind]--
	}
	for k, left := range counts {
		assert.Zero(t, left, k)
	}
}

func TestKindsOfPrices(t *testing.T) {
	p := prices(t)
	p.Drive.USDSource, p.Drive.WattsSource, p.Drive.ReadSource = "measured with a meter", "", "assumption: none"
	kinds := make(map[string]Kind)
	for _, f := range priceFigures(p) {
		kinds[f.Name] = f.Kind
		require.NoError(t, f.check(false), f.Name)
	}
	assert.Equal(t, []Kind{Measured, Assumed, Assumed, Published},
		[]Kind{kinds["csd.usd"], kinds["csd.watts"], kinds["csd.read"], kinds[figureYears]})
}
