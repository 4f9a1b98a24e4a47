package simulation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDays runs days of the first seeds.
func TestDays(t *testing.T) {
	for seed := range uint64(50) {
		_, err := New(seed, Options{}).Run(200_000)
		require.NoError(t, err)
	}
}

// TestOneSeedIsOneDay runs days twice.
func TestOneSeedIsOneDay(t *testing.T) {
	for seed := range uint64(20) {
		a, b := New(seed, Options{}), New(seed, Options{})
		_, err := a.Run(10_000)
		require.NoError(t, err)
		_, err = b.Run(10_000)
		require.NoError(t, err)
		assert.Equal(t, a.Hash(), b.Hash(), seed)
	}
}
