package offload

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// fluid is a job whose two sides have fixed rates and divide the splits at the ratio: the side that is done first
// waits for the other side.
type fluid struct {
	gthp, local, remote float64
	away                bool
	in                  Inputs
}

// run advances the time by one second.
func (f *fluid) run(ratio float64) {
	rate := f.gthp
	if f.away {
		ratio = 0
	}
	if ratio < 1 {
		rate = math.Min(rate, f.local/(1-ratio))
	}
	if ratio > 0 {
		rate = math.Min(rate, f.remote/ratio)
	}
	f.in.Seconds++
	f.in.StallSeconds += 1 - rate/f.gthp
	f.in.TakenRows += rate
	f.in.LocalRows += rate * (1 - ratio)
	f.in.RemoteRows += rate * ratio
	f.in.LocalBusy += math.Min(1, rate*(1-ratio)/f.local)
	f.in.RemoteBusy += math.Min(1, rate*ratio/f.remote)
	f.in.RemoteAway = f.away
}

// rate returns the job's throughput at a ratio.
func (f *fluid) rate(ratio float64) float64 {
	g := *f
	before := g.in.LocalRows + g.in.RemoteRows
	g.run(ratio)
	return g.in.LocalRows + g.in.RemoteRows - before
}

func tuneFor(f *fluid, tuner *Tuner, ratio float64, seconds int) (float64, []Record) {
	var log []Record
	for range seconds {
		f.run(ratio)
		r := tuner.Decide(f.in)
		ratio = r.Decision.Ratio
		log = append(log, r)
	}
	return ratio, log
}

// standing returns the ratio that applies unless a try gains.
func standing(r Record) float64 {
	if after := r.Decision.After; after.Trying {
		return after.fastest().Ratio
	}
	return r.Decision.Ratio
}

// TestTunerFindsTheBalance draws jobs, and changes T, the load and the workers while the tuner runs. The best ratio of
// which the tuner knows is within 4 % of the best one after 60, 150 and 300 s. After a change it is within 7 %, because
// a smaller change does not end a rest; a change of a side that has no splits, or in the middle of a search, is not
// seen at all before the next rest is over. In the last 50 s the tuner rests, a last try apart, unless a rest has
// lasted its time; and its log replays.
func TestTunerFindsTheBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(10, 1000)
		ratio := rapid.Float64Range(0.05, 0.95).Draw(t, "ratio")
		f := &fluid{gthp: rate.Draw(t, "gthp"), local: rate.Draw(t, "local"), remote: rate.Draw(t, "remote")}
		tuner := NewTuner(ratio)
		var log []Record
		changed, seen := false, true
		for range 3 {
			var part []Record
			ratio, part = tuneFor(f, tuner, ratio, 300)
			log = append(log, part...)
			best := 0.0
			for i := range 101 {
				best = math.Max(best, f.rate(float64(i)/100))
			}
			for _, seconds := range []int{60, 150, 300} {
				if !changed {
					require.GreaterOrEqual(t, f.rate(standing(part[seconds-1])), 0.96*best, "after %d s", seconds)
				} else if seen && seconds > 60 {
					require.GreaterOrEqual(t, f.rate(standing(part[seconds-1])), 0.93*best, "after %d s", seconds)
				}
			}
			changes, rested := 0, false
			for i, r := range part {
				before, after := &r.Before, &r.Decision.After
				rested = rested || before.Resting && !after.Resting && after.Rest > 0
				if i >= 250 && r.Decision.Changed {
					changes++
				}
			}
			if !rested {
				require.LessOrEqual(t, changes, 2)
			}
			changed = true
			if last := &part[len(part)-1].Decision.After; !last.Resting && last.Lacked > 0 {
				seen = false // the change falls into what a search observes
			}
			switch rapid.IntRange(0, 2).Draw(t, "change") {
			case 0:
				f.gthp = rate.Draw(t, "gthp")
			case 1:
				f.local = rate.Draw(t, "local")
				seen = seen && ratio < 1
			case 2:
				f.remote = rate.Draw(t, "remote")
				seen = seen && ratio > 0
			}
		}
		text, err := json.Marshal(log)
		require.NoError(t, err)
		var read []Record
		require.NoError(t, json.Unmarshal(text, &read))
		require.NoError(t, Replay(read))
	})
}

// TestTunerForgetsTheRateBeforeAChange halves the local rate in the middle of a rest. The first search after that
// compares the ratios by rates that were observed since.
func TestTunerForgetsTheRateBeforeAChange(t *testing.T) {
	f := &fluid{gthp: 206.5, local: 32, remote: 170}
	tuner := NewTuner(0.25)
	ratio, _ := tuneFor(f, tuner, 0.25, 300)
	f.local = 16
	ratio, log := tuneFor(f, tuner, ratio, 60)
	assert.InDelta(t, 170.0/186, ratio, 0.025)
	for _, r := range log {
		after := &r.Decision.After
		for _, tried := range after.Tried[:after.Count] {
			if after.Rest == 0 { // of the search after the change
				assert.InDelta(t, f.rate(tried.Ratio), tried.rate(), 0.01, "at %.3f", tried.Ratio)
			}
		}
	}
}

// TestTunerTakesALossBack has a machine on which the balance of the observed rates is wrong, because each local row
// slows the trainer down. The tuner tries, goes back, and waits longer before each further try.
func TestTunerTakesALossBack(t *testing.T) {
	tuner, ratio := NewTuner(1), 1.0
	var in Inputs
	at := map[float64]int{}
	for range 1200 {
		rate := 100 * (1 - 2*(1-ratio)) // of 120
		in.Seconds++
		in.StallSeconds += 0.2
		in.TakenRows += rate
		in.LocalRows += rate * (1 - ratio)
		in.RemoteRows += rate * ratio
		in.LocalBusy += 0.3
		in.RemoteBusy++
		in.LocalSupply, in.RemoteSupply = 50, 100
		ratio = tuner.Decide(in).Decision.Ratio
		at[ratio]++
	}
	assert.Greater(t, at[1], 1050, "of 1200 seconds")
	assert.Greater(t, len(at), 1, "it tried")
}

// TestTunerGoesWhereTheProfileWasBetter has a machine on which every ratio between 0 and 1 is slower.
func TestTunerGoesWhereTheProfileWasBetter(t *testing.T) {
	for _, end := range []float64{0, 1} {
		f := &fluid{gthp: 500, local: 200, remote: 200, in: Inputs{LocalThroughput: 200 * (1 - end),
			RemoteThroughput: 200 * end}}
		tuner, ratio := NewTuner(0.5), 0.5
		for second := range 80 {
			f.run(ratio)
			if ratio != end {
				f.in.TakenRows -= 300
			}
			r := tuner.Decide(f.in)
			ratio = r.Decision.Ratio
			if second >= 30 {
				require.InDelta(t, end, standing(r), 0)
			}
		}
		assert.InDelta(t, end, ratio, 0)
	}
}

func TestTunerRestsWhileTheTrainerDoesNotWait(t *testing.T) {
	f := &fluid{gthp: 100, local: 1000, remote: 1000}
	_, log := tuneFor(f, NewTuner(0.9), 0.9, 30)
	for _, r := range log {
		assert.False(t, r.Decision.Changed)
		assert.InDelta(t, 0.9, r.Decision.Ratio, 0)
	}
}

func TestTunerWithoutWorkers(t *testing.T) {
	f := &fluid{gthp: 300, local: 100, remote: 200}
	tuner := NewTuner(0.66)
	ratio, _ := tuneFor(f, tuner, 0.66, 10)
	f.away = true
	ratio, log := tuneFor(f, tuner, ratio, 10)
	assert.Zero(t, ratio)
	said := 0
	for _, r := range log {
		if r.Decision.Changed {
			said++
			assert.Contains(t, r.Decision.Why, "everything is local")
		}
	}
	assert.Equal(t, 1, said)
	f.away, f.remote = false, 50 // other workers come
	ratio, log = tuneFor(f, tuner, ratio, 200)
	assert.InDelta(t, 0.66, log[0].Decision.Ratio, 0.01, "the ratio before")
	assert.InDelta(t, 1.0/3, ratio, 0.03, "and then theirs")
}

// TestTunerTriesASideOfWhichNothingIsKnown begins with everything local and without a profile of the workers.
func TestTunerTriesASideOfWhichNothingIsKnown(t *testing.T) {
	for _, begin := range []float64{0, 1} {
		f := &fluid{gthp: 300, local: 100, remote: 100}
		ratio, _ := tuneFor(f, NewTuner(begin), begin, 200)
		assert.InDelta(t, 0.5, ratio, 0.03)
	}
	f := &fluid{gthp: 300, local: 100, remote: 300, in: Inputs{RemoteSupply: 300}}
	_, log := tuneFor(f, NewTuner(0), 0, 12)
	assert.InDelta(t, 0.75, log[11].Decision.Ratio, 0.035, "the profile's rate stands in")
}

func TestTunerTakesAnyNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), -1, 0, most}))
		tuner := NewTuner(number.Draw(t, "ratio"))
		var log []Record
		for range 20 {
			var in Inputs
			for _, v := range []*float64{&in.Seconds, &in.StallSeconds, &in.TakenRows, &in.EpochRows, &in.LocalRows,
				&in.RemoteRows, &in.LocalBusy, &in.RemoteBusy, &in.LocalSupply, &in.RemoteSupply, &in.LocalThroughput,
				&in.RemoteThroughput} {
				*v = number.Draw(t, "input")
			}
			in.RemoteAway = rapid.Bool().Draw(t, "away")
			r := tuner.Decide(in)
			require.True(t, r.Decision.Ratio >= 0 && r.Decision.Ratio <= 1)
			log = append(log, r)
		}
		text, err := json.Marshal(log)
		require.NoError(t, err)
		var read []Record
		require.NoError(t, json.Unmarshal(text, &read))
		require.NoError(t, Replay(read))
	})
}

func TestReplayNotices(t *testing.T) {
	f := &fluid{gthp: 300, local: 100, remote: 200}
	_, log := tuneFor(f, NewTuner(0.2), 0.2, 20)
	require.NoError(t, Replay(log))
	require.NoError(t, Replay(log[5:]))
	missing := append(append([]Record(nil), log[:8]...), log[9:]...)
	require.ErrorIs(t, Replay(missing), ErrReplay)
	log[10].Decision.Ratio += 0.1
	require.ErrorIs(t, Replay(log), ErrReplay)
}

// triedAt returns a state with rates at ratios, each observed for the time of a result.
func triedAt(rates map[float64]float64) *State {
	s := &State{}
	for ratio, rate := range rates {
		s.Ratio, s.Seen = ratio, Tried{ratio, rate * verifySeconds, verifySeconds}
		s.record()
	}
	return s
}

// TestPotentialByHand has lines that can be computed by hand.
func TestPotentialByHand(t *testing.T) {
	const between = 1 / (2./95 - 1./100) // the line through 100 and 95 rows a second, as far beyond
	for name, c := range map[string]struct {
		rates       map[float64]float64
		in          Inputs
		ratio, want float64
	}{
		"the local side makes no more with fewer splits": {map[float64]float64{0: 100}, Inputs{}, 0.5, 200},
		"the workers make no more with fewer splits":     {map[float64]float64{1: 100}, Inputs{}, 0.25, 400},
		"a line beyond two ratios":                       {map[float64]float64{0.4: 100, 0.45: 95}, Inputs{}, 0.5, between},
		"a line before two ratios":                       {map[float64]float64{0.6: 100, 0.55: 95}, Inputs{}, 0.5, between},
		"no line goes through an end":                    {map[float64]float64{0.4: 80, 0.8: 90, 1: 110}, Inputs{}, 0.6, 120},
		"the profile of a side":                          {nil, Inputs{LocalThroughput: 100}, 0.5, 230},
		"the supply, where nothing was made":             {nil, Inputs{RemoteSupply: 100}, 0.5, 230},
		"the trainer":                                    {nil, Inputs{TrainerThroughput: 70, LocalThroughput: 50}, 0.5, 70},
		"the lines of both sides, the higher":            {map[float64]float64{0: 100, 1: 50}, Inputs{}, 0.5, 100},
	} {
		assert.InDelta(t, c.want, triedAt(c.rates).potentialAt(c.in, c.ratio), 1e-6, name)
	}
}

// TestNoTryBeyondReach has a side that is known to be slow: no ratio is tried at which that side takes longer than the
// best ratio has taken.
func TestNoTryBeyondReach(t *testing.T) {
	in := Inputs{RemoteThroughput: 10}
	s := triedAt(map[float64]float64{0: 100})
	target, promised := s.mostPromising(in)
	assert.InDelta(t, 0.1, target, 0.021)
	assert.Less(t, promised, 100*(1+0.15))
	in.LocalThroughput, in.RemoteThroughput = 100, 1
	_, promised = s.mostPromising(in)
	assert.Less(t, promised, 100*(1+potentialGain), "the search ends")
}

// TestSearchNeedsFewTries has machines with a summit anywhere, whose sides make half of what was observed while they
// were busy: a search comes to within potentialGain of it. A rate that hardly depends on the ratio ends the search
// soon.
func TestSearchNeedsFewTries(t *testing.T) {
	tries := func(rate func(float64) float64, in Inputs, begin, local, remote float64) (best Tried, count int) {
		s := State{Ratio: begin, Local: local, Remote: remote}
		for target, promised := begin, math.Inf(1); s.Count < mostTried &&
			promised >= s.fastest().rate()*(1+potentialGain); target, promised = s.mostPromising(in) {
			s.Ratio, s.Seen = target, Tried{target, rate(target) * trySeconds, trySeconds}
			s.record()
		}
		return s.fastest(), s.Count
	}
	for i := range 49 {
		summit := float64(i+1) / 50
		rate := func(x float64) float64 { return math.Min(100*(1-summit)/(1-x), 100*summit/x) }
		for _, begin := range []float64{0.1, 0.5, 0.9} {
			best, count := tries(rate, Inputs{}, begin, 200*(1-summit), 200*summit)
			assert.GreaterOrEqual(t, best.rate(), 100*(1-potentialGain), "summit at %v from %v", summit, begin)
			assert.LessOrEqual(t, count, 12, "summit at %v from %v", summit, begin)
		}
	}
	best, count := tries(func(x float64) float64 { return 318 - 20*math.Abs(x-0.8) },
		Inputs{LocalThroughput: 300, RemoteThroughput: 310, LocalSupply: 1000, RemoteSupply: 900}, 0.1, 0, 0)
	assert.Greater(t, best.rate(), 310.0)
	assert.LessOrEqual(t, count, 7, "of a flat rate")
}

// TestTunerObservesWholeEpochs has epochs of 12 seconds, in the last four of which the trainer waits for a slow worker,
// unless everything is local. The tuner judges no ratio by a part of an epoch, and goes to 0.
func TestTunerObservesWholeEpochs(t *testing.T) {
	tuner, ratio := NewTuner(0.2), 0.2
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

// TestShortBusyTimesWeighLittle: rows count when they are done, so an interval in which a side ends a long work seems
// fast.
func TestShortBusyTimesWeighLittle(t *testing.T) {
	rate := 30000.0
	smooth(&rate, 16384, 0.23, 1)
	assert.Less(t, rate, 33000.0)
	rate = 30000
	smooth(&rate, 71234, 1, 1)
	assert.Greater(t, rate, 38000.0, "a whole interval weighs its time")
}

// TestRecordKeepsOrder: ratios are kept in order, a ratio that is tried again has its last rate, and a full search
// takes no further ratio.
func TestRecordKeepsOrder(t *testing.T) {
	s := triedAt(map[float64]float64{0.5: 10, 0: 5, 0.9: 8, 0.25: 12})
	var ratios []float64
	for _, tried := range s.Tried[:s.Count] {
		ratios = append(ratios, tried.Ratio)
	}
	assert.Equal(t, []float64{0, 0.25, 0.5, 0.9}, ratios)
	assert.InDelta(t, 0.25, s.fastest().Ratio, 0)
	assert.InDelta(t, 12, s.fastest().rate(), 1e-9)
	s.Ratio, s.Seen = 0.25, Tried{0.25, 3, 1}
	s.record()
	assert.Equal(t, 4, s.Count)
	assert.InDelta(t, 0.5, s.fastest().Ratio, 0)
	for i := range 2 * mostTried {
		s.Ratio, s.Seen = 0.91+float64(i)/1000, Tried{0.91 + float64(i)/1000, 1, 1}
		s.record()
	}
	assert.Equal(t, mostTried, s.Count)
}
