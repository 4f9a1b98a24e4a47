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

// TestDomains holds the number of each use: with another number, other rows are drawn.
func TestDomains(t *testing.T) {
	assert.Equal(t, []Domain{1, 2, 3, 4}, []Domain{DomainSplits, DomainRows, DomainFolds, DomainValidation})
}
