package operators

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRun measures every operator with one thread and with two. How fast they are is not tested.
func TestRun(t *testing.T) {
	var steps []string
	results, err := Run(t.Context(), Options{Values: 1000, Threads: []int{1, 2}, Time: time.Nanosecond,
		Folder: t.TempDir(), Progress: func(step string) { steps = append(steps, step) }})
	require.NoError(t, err)
	require.Len(t, results, 16)
	assert.Len(t, steps, 16)
	for i, r := range results {
		op := table()[i%8]
		assert.Equal(t, op.name, r.Operator)
		assert.Equal(t, 1+i/8, r.Threads)
		assert.Equal(t, op.paper, r.Paper)
		assert.GreaterOrEqual(t, r.Values, int64(1000*r.Threads), "each thread makes a turn")
		assert.Zero(t, r.Values%1000)
		assert.InEpsilon(t, float64(r.Values), r.ValuesPerSecond*r.ElapsedSeconds, 1e-9)
		assert.EqualValues(t, 45_840_617*op.columns, r.DataSetValues)
		assert.InEpsilon(t, float64(45_840_617*op.columns), r.ValuesPerSecond*r.DataSetSeconds, 1e-9)
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"values": {Values: -1}, "too many values": {Values: MaxValues + 1}, "no threads": {Threads: []int{0}},
		"too many threads": {Threads: []int{MaxThreads + 1}}, "time": {Time: -1},
	} {
		_, err := Run(t.Context(), o)
		assert.ErrorIs(t, err, ErrOptions, name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, Options{Values: 10, Folder: t.TempDir()})
	assert.ErrorIs(t, err, context.Canceled)
}
