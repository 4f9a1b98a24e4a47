package vocabulary

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/sdk/vocabulary/occurrence"
)

// TestEntriesAreSortedInEveryOrder compares with the comparison of two entries, which merges use.
func TestEntriesAreSortedInEveryOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		mask := rapid.Uint64().Draw(t, "bits")
		list := make([]occurrence.Entry, rapid.SampledFrom([]int{3, 300, 3000}).Draw(t, "entries"))
		for i := range list {
			list[i] = occurrence.Entry{Key: int64(random.Uint64() & mask), Position: random.Uint64() & mask,
				Count: random.Uint64N(9)}
		}
		occurrence.SortByKey(list)
		for _, order := range []Order{FirstSeen, ByCount, ByCountText} {
			sorted := slices.Clone(list)
			order.sortEntries(sorted)
			assert.True(t, slices.IsSortedFunc(sorted, order.compareEntries()), order)
		}
	})
}
