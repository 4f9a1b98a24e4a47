package remote

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryMiniBatchComesOnce(t *testing.T) {
	for _, o := range []clusterOptions{
		{rows: 400, parts: 3, batch: 10, split: 4, nodes: 2},
		{rows: 400, parts: 3, batch: 10, split: 4, nodes: 2, order: "deterministic"},
		{rows: 95, parts: 2, batch: 10, split: 3, nodes: 1, epochs: 3, unix: true},
		{rows: 5, batch: 10, split: 1, nodes: 3, epochs: 2, order: "deterministic"},
	} {
		c := newCluster(t, o)
		j := c.attach(t, c.dial(t), AttachOptions{})
		assert.Equal(t, testSchema, j.Schema())
		got := take(t, c, j, -1, nil)
		require.NoError(t, got.err)
		total := c.plan[0].MiniBatches()
		require.Len(t, got.numbers, int(total)*len(c.plan))
		for e := range c.plan {
			numbers := got.numbers[e*int(total) : (e+1)*int(total)]
			if o.order == "" {
				numbers = sorted(numbers)
			}
			require.Equal(t, all(0, total), numbers)
		}
		last := c.delivered(0)
		require.EqualValues(t, c.spec.Epochs-1, last.Epoch)
		require.Equal(t, total, last.Mark, "everything is durable when the iteration ends")
		require.NoError(t, j.Close())
	}
}
