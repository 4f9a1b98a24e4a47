package offload

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// triedAt makes a state whose search has tried ratios, in order, each for ten seconds.
func triedAt(rates map[float64]float64) *State {
	var s State
	for ratio, rate := range rates {
		seen := Sample{}
		for range 10 {
			seen.addInterval(rate, 1)
		}
		s.Search.recordRate(ratio, seen)
	}
	return &s
}

// TestRecordKeepsOrder: ratios are kept in order, a ratio that is tried again has its last rate, and a full search
// takes no further ratio.
func TestRecordKeepsOrder(t *testing.T) {
	s := triedAt(map[float64]float64{0.5: 10, 0: 5, 0.9: 8, 0.25: 12})
	var ratios []float64
	for _, tried := range s.Search.Tried[:s.Search.Count] {
		ratios = append(ratios, tried.Ratio)
	}
	assert.Equal(t, []float64{0, 0.25, 0.5, 0.9}, ratios)
	best := s.Search.fastestTried()
	assert.InDelta(t, 0.25, best.Ratio, 0)
	assert.InDelta(t, 12, best.Seen.meanRate(), 1e-9)
	s.Search.recordRate(0.25, Sample{Rows: 3, Seconds: 1, Count: 1})
	assert.Equal(t, 4, s.Search.Count)
	best = s.Search.fastestTried()
	assert.InDelta(t, 0.5, best.Ratio, 0)
	for i := range 2 * mostTried {
		s.Search.recordRate(0.91+float64(i)/1000, Sample{Rows: 1, Seconds: 1, Count: 1})
	}
	assert.Equal(t, mostTried, s.Search.Count)
}

// TestPotentialByHand has a local side of 100 rows a second and workers of 300: the job makes min(100/(1-x), 300/x),
// and at most 400, at 0.75.
func TestPotentialByHand(t *testing.T) {
	// 0.5 makes 200, so the local side makes 100; 0.9 makes 333, so the workers make 300.
	s := triedAt(map[float64]float64{0.5: 200, 0.9: 1000.0 / 3})
	ratio, rate := s.potentialBetween(Inputs{}, 1)
	assert.InDelta(t, 0.75, ratio, 1e-9)
	assert.InDelta(t, 400, rate, 1e-6)
	_, rate = s.potentialBetween(Inputs{TrainerThroughput: 350}, 1)
	assert.InDelta(t, 350, rate, 1e-6, "no more than the trainer")
	// With 0.75 tried, no ratio on either side of it is better.
	s = triedAt(map[float64]float64{0.5: 200, 0.75: 400, 0.9: 1000.0 / 3})
	for i := 1; i <= 2; i++ {
		_, rate = s.potentialBetween(Inputs{}, i)
		assert.InDelta(t, 400, rate, 1e-6)
	}
	// Nothing is known of the ends: a step of firstStep towards each.
	s = triedAt(map[float64]float64{0.5: 200})
	ratio, rate = s.potentialBetween(Inputs{}, 0)
	assert.InDelta(t, 0.5*math.Exp(-firstStep), ratio, 1e-9)
	assert.InDelta(t, 200*math.Exp(firstStep), rate, 1e-6)
	ratio, rate = s.potentialBetween(Inputs{}, 1)
	assert.InDelta(t, 1-0.5*math.Exp(-firstStep), ratio, 1e-9)
	assert.InDelta(t, 200*math.Exp(firstStep), rate, 1e-6)
}

// TestNoTryBeyondReach has workers that make 27,000 rows a second at most, beside a job that makes 299,000 whether 0 or
// 0.056 of the splits are theirs. The next ratio is above 0.056, but none at which the workers alone take longer.
func TestNoTryBeyondReach(t *testing.T) {
	s := triedAt(map[float64]float64{0: 299130, 0.056: 299092})
	in := Inputs{LocalThroughput: 329454, RemoteThroughput: 26780}
	ratio, _ := s.potentialBetween(in, 2)
	assert.Greater(t, ratio, 0.056)
	assert.LessOrEqual(t, ratio/(trustedShare*26780), 1/299092.0)
	s = triedAt(map[float64]float64{1: 299130, 0.944: 299092}) // the same with the sides changed
	ratio, _ = s.potentialBetween(Inputs{LocalThroughput: 26780, RemoteThroughput: 329454}, 0)
	assert.Less(t, ratio, 0.944)
	assert.LessOrEqual(t, (1-ratio)/(trustedShare*26780), 1/299092.0)
	ratio, _ = triedAt(map[float64]float64{0.1: 80, 0.11: 90}).potentialBetween(Inputs{RemoteThroughput: 100}, 2)
	assert.Greater(t, ratio, 0.11+0.2, "workers that may make more are tried in the middle")
}

// TestLosingTriesEndSoon has an epoch of ten seconds at the best ratio. A ratio that makes half as much is given up
// after that time, and one that makes 30 % less is observed for an epoch of its own.
func TestLosingTriesEndSoon(t *testing.T) {
	o, in := TunerOptions{}.withDefaults(), Inputs{EpochRows: 1000, Seconds: 100}
	for rate, want := range map[float64]bool{50: true, 70: false} {
		s := triedAt(map[float64]float64{0: 100})
		s.Trying, s.Changed = true, 100-14
		s.Seen = Sample{Rows: 10 * rate, Seconds: 10, Squares: 10 * rate * rate, Count: 10}
		assert.Equal(t, want, s.isRateKnown(o, in), "%v rows/s", rate)
		s.Seen = Sample{Rows: 9 * rate, Seconds: 9, Squares: 9 * rate * rate, Count: 9}
		assert.False(t, s.isRateKnown(o, in), "%v rows/s, less than the best ratio's epoch", rate)
	}
}

// TestShortBusyTimesWeighLittle: rows count when they are done, so an interval in which a side ends a long work seems
// fast.
func TestShortBusyTimesWeighLittle(t *testing.T) {
	rate := 30000.0
	observeRate(&rate, 16384, 0.23, 1)
	assert.Less(t, rate, 33000.0)
	rate = 30000
	observeRate(&rate, 71234, 1, 1)
	assert.Greater(t, rate, 38000.0, "a whole interval weighs its time")
}

// TestNoLineGoesThroughAnEnd: an end, where one side costs nothing, may be faster than all ratios near it. It must not
// hide a better ratio in the middle.
func TestNoLineGoesThroughAnEnd(t *testing.T) {
	// A line from 1 (time 1/110) through 0.8 (1/90) would rise to 1/76 at 0.6, and hide what is there.
	s := triedAt(map[float64]float64{0.4: 80, 0.8: 90, 1: 110})
	_, rate := s.potentialBetween(Inputs{}, 1)
	assert.Greater(t, rate, 100.0)
}

// tries runs a search over a function of the ratio, without noise, and returns the best ratio and the number of tries.
func tries(t *testing.T, rate func(float64) float64, in Inputs, begin float64) (best Tried, count int) {
	t.Helper()
	s := State{Ratio: begin}
	s.Search.From = begin
	for target, ok := begin, true; ok; count++ {
		require.LessOrEqual(t, count, mostTried)
		seen := Sample{}
		for range 10 {
			seen.addInterval(rate(target), 1)
		}
		s.Ratio = target
		s.Search.recordRate(target, seen)
		target, _, ok = s.nextRatio(TunerOptions{}.withDefaults(), in)
	}
	return s.Search.fastestTried(), count
}

// TestSearchNeedsFewTries has machines of which no side's rate is known, with a summit anywhere: a search comes to
// within potentialGain of it. A rate that hardly depends on the ratio ends the search soon.
func TestSearchNeedsFewTries(t *testing.T) {
	for i := range 49 {
		summit := float64(i+1) / 50
		rate := func(x float64) float64 { return math.Min(100*(1-summit)/(1-x), 100*summit/x) }
		for _, begin := range []float64{0.1, 0.5, 0.9} {
			best, count := tries(t, rate, Inputs{}, begin)
			assert.GreaterOrEqual(t, best.Seen.meanRate(), 100*(1-potentialGain), "summit at %v from %v", summit, begin)
			assert.LessOrEqual(t, count, 12, "summit at %v from %v", summit, begin)
		}
	}
	best, count := tries(t, func(x float64) float64 { return 318 - 20*math.Abs(x-0.8) },
		Inputs{LocalThroughput: 300, RemoteThroughput: 310, LocalSupply: 1000, RemoteSupply: 900}, 0.1)
	assert.Greater(t, best.Seen.meanRate(), 312.0)
	assert.LessOrEqual(t, count, 7, "of a flat rate")
}

// TestTunerObservesWholeEpochs has epochs of 12 seconds, in the last four of which the trainer waits for a slow worker,
// unless everything is local. The tuner judges no ratio by a part of an epoch, and goes to 0.
func TestTunerObservesWholeEpochs(t *testing.T) {
	tuner, ratio := NewTuner(TunerOptions{}, 0.2), 0.2
	in := Inputs{EpochRows: 1000, LocalThroughput: 100, RemoteThroughput: 5, TrainerThroughput: 500, LocalSupply: 100,
		RemoteSupply: 6}
	left := in.EpochRows
	for range 120 {
		in.Seconds++
		in.StallSeconds += 0.5
		made := 100.0
		if ratio > 0 {
			made = 125
			if left < 500 {
				made = 500.0 / 8
			}
		}
		made = math.Min(made, left)
		left -= made
		if left == 0 {
			left = in.EpochRows
		}
		in.TakenRows += made
		in.LocalRows += made * (1 - ratio)
		in.RemoteRows += made * ratio
		in.LocalBusy++
		in.RemoteBusy++
		r := tuner.Decide(in)
		if after := r.Decision.After; r.Before.Trying && !after.Trying {
			assert.GreaterOrEqual(t, r.Before.Seen.Rows+made, in.EpochRows)
		}
		ratio = r.Decision.Ratio
	}
	assert.Zero(t, ratio)
}
