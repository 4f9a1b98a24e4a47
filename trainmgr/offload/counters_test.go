package offload

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func ExampleCounters() {
	counters := NewCounters(0.75)
	for range 8 {
		side := counters.Next()
		fmt.Print(side, " ")
		counters.Count(side)
	}
	// Output: remote remote local remote remote remote local remote
}

// TestCountersAreNeverOffByMoreThanOneSplit draws ratios, and changes of the ratio, and counts.
func TestCountersAreNeverOffByMoreThanOneSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := NewCounters(rapid.Float64Range(0, 1).Draw(t, "ratio"))
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			for range rapid.IntRange(0, 300).Draw(t, "splits") {
				c.Count(c.Next())
				local, remote := c.Started()
				require.LessOrEqual(t, math.Abs(float64(remote)-c.Ratio()*float64(local+remote)), 1.0)
			}
			switch rapid.IntRange(0, 2).Draw(t, "then") {
			case 0:
				c.Restart()
			case 1:
				c.SetRatio(rapid.Float64Range(0, 1).Draw(t, "next ratio"))
			}
		}
	})
}

func TestCountersAtTheEnds(t *testing.T) {
	for ratio, want := range map[float64]Side{0: Local, 1: Remote, -1: Local, 2: Remote, math.Inf(1): Remote} {
		c := NewCounters(ratio)
		for range 100 {
			require.Equal(t, want, c.Next(), ratio)
			c.Count(want)
		}
	}
	assert.Zero(t, NewCounters(math.NaN()).Ratio())
}

func TestCountersOfTheSameRatioGoOn(t *testing.T) {
	c := NewCounters(0.5)
	c.Count(c.Next())
	c.SetRatio(0.5)
	_, remote := c.Started()
	assert.Equal(t, uint64(1), remote)
	c.SetRatio(0.25)
	local, remote := c.Started()
	assert.Zero(t, local+remote)
	// After Restart a side does not make up for splits that it could not take.
	for range 50 {
		c.Count(Local)
	}
	c.Restart()
	assert.Equal(t, Local, c.Next())
}
