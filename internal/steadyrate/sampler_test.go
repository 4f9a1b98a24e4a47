package steadyrate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGrowthIsThatOfTheTimeThatCounts checks that counters grow by what they grew after the slow beginning.
func TestGrowthIsThatOfTheTimeThatCounts(t *testing.T) {
	now, slow, steady := time.Duration(0), int64(0), int64(0)
	s := NewSampler(New(500*time.Millisecond, 1), func() []int64 { return []int64{slow, steady} })
	for i := range 10_000 {
		if i < 3 {
			now += 200 * time.Millisecond
			slow += 1000
		} else {
			now += 10 * time.Millisecond
		}
		steady += 7
		if !s.Add(now, 100) {
			break
		}
	}
	r := s.Rate()
	require.True(t, r.Settled)
	require.GreaterOrEqual(t, r.From, 600*time.Millisecond)
	pieces := r.Count / 100
	assert.Equal(t, []int64{0, 7 * pieces}, s.Growth())
}

// TestGrowthWithoutWork checks a measurement in which nothing was finished.
func TestGrowthWithoutWork(t *testing.T) {
	s := NewSampler(New(time.Second, 1), func() []int64 { return []int64{5} })
	assert.Zero(t, s.Rate())
	assert.Equal(t, []int64{0}, s.Growth())
}
