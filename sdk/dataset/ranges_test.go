package dataset

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawRanges draws a set of numbers below 31, and the same set as ranges.
func drawRanges(t *rapid.T, name string) (set map[uint64]bool, ranges []Range) {
	set = map[uint64]bool{}
	for _, n := range rapid.SliceOf(rapid.Uint64Range(0, 30)).Draw(t, name) {
		set[n] = true
		ranges = InsertNumber(ranges, n)
	}
	return set, ranges
}

func inRanges(ranges []Range, number uint64) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool { return r.From <= number && number < r.To })
}

// requireNormal demands that ranges ascend, that none is empty, and that none touches the next.
func requireNormal(t require.TestingT, ranges []Range) {
	for i, r := range ranges {
		require.Less(t, r.From, r.To)
		if i > 0 {
			require.Less(t, ranges[i-1].To, r.From)
		}
	}
}

func TestRangesAreTheSameAsSets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		aSet, a := drawRanges(rt, "a")
		bSet, b := drawRanges(rt, "b")
		total := rapid.Uint64Range(31, 40).Draw(rt, "total")
		union, both, gaps := UnionRanges(a, b), IntersectRanges(a, b), ComplementRanges(a, total)
		for _, ranges := range [][]Range{a, b, union, both, gaps} {
			requireNormal(rt, ranges)
		}
		for n := range uint64(45) {
			require.Equal(rt, aSet[n], inRanges(a, n), "%d", n)
			require.Equal(rt, aSet[n] || bSet[n], inRanges(union, n), "%d", n)
			require.Equal(rt, aSet[n] && bSet[n], inRanges(both, n), "%d", n)
			require.Equal(rt, !aSet[n] && n < total, inRanges(gaps, n), "%d", n)
		}
	})
}

func TestUnionRangesTakesListsThatTouch(t *testing.T) {
	assert.Equal(t, []Range{{0, 9}}, UnionRanges([]Range{{0, 3}, {3, 4}, {4, 4}}, []Range{{4, 9}}))
	assert.Empty(t, UnionRanges([]Range{{5, 5}}, nil))
	assert.Equal(t, []Range{{0, 7}}, ComplementRanges(nil, 7))
	assert.Empty(t, ComplementRanges(nil, 0))
}

// TestTokenAcknowledged checks that a token lists the numbers below its mark as the first range.
func TestTokenAcknowledged(t *testing.T) {
	assert.Equal(t, []Range{{0, 3}, {5, 9}}, Token{Mark: 3, Ranges: []Range{{5, 9}}}.Acknowledged())
	assert.Equal(t, []Range{{5, 9}}, Token{Ranges: []Range{{5, 9}}}.Acknowledged())
	assert.Empty(t, Token{}.Acknowledged())
}
