package pipeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/steadyrate"
)

// TestAccountFindsWhatIsNotExactlyOnce checks every way in which mini-batches can be wrong.
func TestAccountFindsWhatIsNotExactlyOnce(t *testing.T) {
	fill := func(numbers ...uint64) *account {
		a := &account{}
		for _, n := range numbers {
			require.NoError(t, a.add(n, arrival{rows: 10, sum: uint32(n)}))
		}
		return a
	}
	require.NoError(t, fill(2, 0, 1).check(3, 30))
	require.ErrorIs(t, fill(0, 1).add(1, arrival{rows: 10}), ErrDiffers, "twice")
	require.ErrorIs(t, fill(0, 2).check(3, 20), ErrDiffers, "one is missing")
	require.ErrorIs(t, fill(0, 1, 2, 3).check(3, 40), ErrDiffers, "one too many")
	require.ErrorIs(t, fill(0, 1, 3).check(3, 30), ErrDiffers, "another number")
	require.ErrorIs(t, fill(0, 1, 2).check(3, 31), ErrDiffers, "a row is missing")

	assert.Equal(t, fill(0, 1, 2).digest(), fill(2, 1, 0).digest(), "the order does not matter")
	other := fill(0, 1)
	require.NoError(t, other.add(2, arrival{rows: 10, sum: 7}))
	assert.NotEqual(t, fill(0, 1, 2).digest(), other.digest(), "the tensors do")
	other = fill(0, 1)
	require.NoError(t, other.add(2, arrival{rows: 11, sum: 2}))
	assert.NotEqual(t, fill(0, 1, 2).digest(), other.digest())
}

// TestRatesOfRounds checks that rounds are weighed by their time.
func TestRatesOfRounds(t *testing.T) {
	var r Result
	r.setRates([]turn{
		{Rate: steadyrate.Rate{PerSecond: 1e6, Count: 1e6, Elapsed: time.Second, Settled: true}, bytes: 4e6,
			trainer: time.Second, node: 2 * time.Second},
		{Rate: steadyrate.Rate{PerSecond: 2e6, Count: 6e6, Elapsed: 3 * time.Second}, bytes: 24e6,
			trainer: 6 * time.Second, node: 5 * time.Second, member: 700 * time.Millisecond},
	})
	assert.InDelta(t, 7e6/4, r.RowsPerSecond, 1e-3)
	assert.InDelta(t, 28e6/4, r.BytesPerSecond, 1e-3)
	assert.InDelta(t, 0.5e6/1.75e6, r.RoundSpread, 1e-9)
	assert.False(t, r.Settled)
	assert.InDelta(t, 1, r.TrainerCPU, 1e-9)
	assert.InDelta(t, 1, r.NodeCPU, 1e-9)
	assert.InDelta(t, 0.1, r.ControlCPU, 1e-9)
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"no command": {},
		"way":        {Command: []string{"x"}, Ways: []Way{"moon"}},
		"model":      {Command: []string{"x"}, Models: []string{"rm9"}},
		"text":       {Command: []string{"x"}, Models: []string{"d1"}},
		"criteo":     {Command: []string{"x"}, Models: []string{"rm1-real"}},
		"rows":       {Command: []string{"x"}, Rows: MaxRows + 1},
		"few rows":   {Command: []string{"x"}, Rows: 3, Partitions: 4},
		"partitions": {Command: []string{"x"}, Partitions: MaxPartitions + 1},
		"threads":    {Command: []string{"x"}, Threads: -1},
		"rounds":     {Command: []string{"x"}, Rounds: MaxRounds + 1},
		"time":       {Command: []string{"x"}, Time: -1},
	} {
		_, err := Run(t.Context(), o)
		require.ErrorIs(t, err, ErrOptions, name)
	}
}
