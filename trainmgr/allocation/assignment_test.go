package allocation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestAssignmentIsFair: every rank has the same number of different workers, two workers differ by at most one rank,
// every worker has a rank, and the connections are bounded.
func TestAssignmentIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.IntRange(1, 130).Draw(t, "ranks")
		workers := rapid.IntRange(0, 130).Draw(t, "workers")
		least := rapid.IntRange(0, 8).Draw(t, "least")
		a := Assign(ranks, workers, least)
		require.LessOrEqual(t, a.Fan(), workers)
		require.GreaterOrEqual(t, a.Fan(), min(least, workers))
		require.LessOrEqual(t, ranks*a.Fan(), max(ranks*max(least, 1), workers+ranks), "connections")
		served := make([]int, workers)
		for r := range ranks {
			mine := map[int]bool{}
			for i := range a.Fan() {
				w := a.Worker(r, i)
				mine[w] = true
				served[w]++
			}
			require.Len(t, mine, a.Fan(), "rank %d has a worker twice", r)
		}
		for w, n := range served {
			require.Positive(t, n, "worker %d has no rank", w)
			require.LessOrEqual(t, n, ranks*a.Fan()/workers+1, "worker %d", w)
			require.GreaterOrEqual(t, n, ranks*a.Fan()/workers, "worker %d", w)
		}
	})
}

func TestAHundredByAHundred(t *testing.T) {
	a := Assign(100, 100, 4)
	assert.Equal(t, 4, a.Fan(), "400 connections, not 10,000")
	assert.Equal(t, []int{96, 97, 98, 99}, []int{a.Worker(24, 0), a.Worker(24, 1), a.Worker(24, 2), a.Worker(24, 3)})
	assert.Equal(t, 0, a.Worker(25, 0), "round the circle")
	assert.Equal(t, 50, Assign(2, 100, 4).Fan(), "two ranks share all workers")
	assert.Equal(t, 3, Assign(100, 3, 4).Fan(), "no more than there are")
}
