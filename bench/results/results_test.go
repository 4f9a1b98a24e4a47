package results

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheEmbeddedRunHasWhatThePlannerCites(t *testing.T) {
	r, err := Peers()
	require.NoError(t, err)
	assert.Equal(t, 1, max(r.Header.Threads, 1), "a rate of one core is wanted")
	for _, model := range []string{"rm1", "rm5"} {
		ours, ok := r.Rate(model, PlainLayout, Ours)
		require.True(t, ok, model)
		loops, ok := r.Rate(model, PlainLayout, TorchArrowLoops)
		require.True(t, ok, model)
		assert.Greater(t, ours, loops)
	}
	for _, part := range []string{r.Header.CPU, r.Header.Time, r.Header.Commit, r.Header.Command} {
		require.NotEmpty(t, part)
		assert.Contains(t, r.Source(), part)
	}
}

func TestWhatTheRunLacksIsAbsent(t *testing.T) {
	r, err := Peers()
	require.NoError(t, err)
	for _, c := range [][3]string{{"rm2", PlainLayout, Ours}, {"rm1", "zstd", Ours}, {"rm1", PlainLayout, "nobody"}} {
		_, ok := r.Rate(c[0], c[1], c[2])
		assert.False(t, ok, c)
	}
}
