package dataset

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseOrderReadsWhatStringReturns(t *testing.T) {
	for _, order := range []Order{Fastest, Deterministic} {
		got, err := ParseOrder(order.String())
		require.NoError(t, err)
		assert.Equal(t, order, got)
	}
	got, err := ParseOrder("")
	require.NoError(t, err)
	assert.Equal(t, Fastest, got)
	for _, s := range []string{"Fastest", "random", "unknown(2)", " "} {
		_, err := ParseOrder(s)
		require.ErrorIs(t, err, ErrOptions)
		assert.ErrorContains(t, err, "want fastest or deterministic")
	}
	assert.Equal(t, "unknown(2)", Order(2).String())
}

// TestDomains checks that every use of drawn numbers has a name and a domain of its own.
func TestDomains(t *testing.T) {
	seen := map[string]bool{}
	for d, name := range Domains {
		assert.NotEmpty(t, name, "domain %d", d)
		assert.False(t, seen[name], "two domains are called %s", name)
		seen[name] = true
	}
}
