package steadyrate

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// measure feeds a meter with pieces of 100, of which the i-th takes the time that took returns.
func measure(t *testing.T, m *Meter, took func(i int) time.Duration) (Rate, time.Duration) {
	t.Helper()
	at := time.Duration(0)
	for i := range 1_000_000 {
		at += took(i)
		if !m.Add(at, 100) {
			return m.Rate(), at
		}
	}
	require.Fail(t, "the measurement does not end")
	return Rate{}, 0
}

// TestSlowBeginningsAreLeftOut checks that the rate is the steady one, whatever the least time.
func TestSlowBeginningsAreLeftOut(t *testing.T) {
	const steadyPiece = 10 * time.Millisecond // 10,000 a second
	for _, least := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second} {
		for name, slow := range map[string][]time.Duration{
			"steady":          nil,
			"opening":         {300 * time.Millisecond},
			"learning":        {80e6, 60e6, 50e6, 40e6, 30e6, 20e6, 20e6, 15e6},
			"fast, then slow": {1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6},
		} {
			rng := rand.New(rand.NewPCG(1, 2))
			r, at := measure(t, New(least, 1), func(i int) time.Duration {
				if i < len(slow) {
					return slow[i]
				}
				return steadyPiece + time.Duration(rng.IntN(400_000)-200_000) // 2 % to each side
			})
			assert.InEpsilon(t, 10_000, r.PerSecond, 0.05, "%s, %v", name, least)
			assert.True(t, r.Settled, "%s, %v", name, least)
			assert.LessOrEqual(t, r.Spread, Goal, "%s, %v", name, least)
			assert.GreaterOrEqual(t, r.Intervals, leastIntervals)
			assert.InDelta(t, r.PerSecond, float64(r.Count)/r.Elapsed.Seconds(), 1e-6)
			assert.LessOrEqual(t, r.From+r.Elapsed, at, "%s, %v", name, least)
			if name == "opening" {
				assert.GreaterOrEqual(t, r.From, slow[0], "%v: the opening does not count", least)
			}
			assert.GreaterOrEqual(t, at, least)
			assert.Less(t, at, Limit(least), "%s, %v: it ends when it has settled", name, least)
		}
	}
}

// TestARateThatNeverSettles checks that the measurement ends at the limit and says how far the rate is known.
func TestARateThatNeverSettles(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const least = 200 * time.Millisecond
	r, at := measure(t, New(least, 1), func(int) time.Duration {
		if rng.IntN(8) == 0 {
			return 400 * time.Millisecond
		}
		return 20 * time.Millisecond
	})
	assert.False(t, r.Settled)
	assert.Greater(t, r.Spread, Goal)
	assert.GreaterOrEqual(t, at, Limit(least))
	assert.Less(t, at, Limit(least)+400*time.Millisecond, "the piece that passes the limit is the last one")
}

// TestTheLimitWaitsForWork checks that there is a rate even if the first piece takes longer than the limit, and if
// pieces of nothing come first.
func TestTheLimitWaitsForWork(t *testing.T) {
	m := New(time.Millisecond, 4)
	assert.Zero(t, m.Rate())
	assert.True(t, m.Add(time.Second, 0), "nothing was counted")
	assert.False(t, m.Add(2*time.Second, 100))
	assert.Equal(t, Rate{PerSecond: 50, Count: 100, Elapsed: 2 * time.Second, Intervals: 1, Spread: 1}, m.Rate())
}

// TestPiecesOfSeveralWorkers checks that workers that finish together do not look like a rate that varies.
func TestPiecesOfSeveralWorkers(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	ahead := time.Duration(0)
	pairs := func(i int) time.Duration { // 60 ms a pair, of which one is ahead by up to 30 ms
		if i%2 == 0 {
			ahead = time.Duration(rng.IntN(30)) * time.Millisecond
			return 60*time.Millisecond - ahead
		}
		return ahead
	}
	r, at := measure(t, New(500*time.Millisecond, 2), pairs)
	assert.True(t, r.Settled)
	assert.Less(t, r.Spread, 0.001)
	assert.InEpsilon(t, 200/0.060, r.PerSecond, 0.001)
	assert.Less(t, at, 700*time.Millisecond)
	alone, _ := measure(t, New(500*time.Millisecond, 1), pairs)
	assert.Greater(t, alone.Spread, r.Spread)
}

// TestLimit checks both of its bounds.
func TestLimit(t *testing.T) {
	assert.Equal(t, 10*time.Millisecond, Limit(time.Millisecond))
	assert.Equal(t, 7*time.Second, Limit(2*time.Second))
	assert.Equal(t, time.Minute+5*time.Second, Limit(time.Minute))
}

// TestStudent compares with the values of tables.
func TestStudent(t *testing.T) {
	for freedom, want := range map[int]float64{1: 12.706, 3: 3.182, 4: 2.776, 9: 2.262, 30: 2.042, 1000: 1.962} {
		assert.InEpsilon(t, want, student95(freedom), 0.02, "%d degrees of freedom", freedom)
	}
}
