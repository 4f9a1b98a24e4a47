package offload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

const (
	mostTry       = 5     // times Up: a try ends after this time, even if its rate is uncertain
	mostTried     = 16    // ratios of a search
	mostVerified  = 3     // how often a result of a search is observed for longer
	leastTryGain  = 0.005 // share of the rate: a result is not replaced for less
	certainSpread = 2     // standard errors: a greater difference is significant
	// certainShareOfRate is the standard error, as a share of a rate, at which the rate counts as known.
	certainShareOfRate = 0.02
	// potentialGain is the gain, as a share of the rate, below which a search does not look for a better ratio.
	potentialGain = 0.03
	// endShare is the share of splits below which a side gets no splits.
	endShare = 0.03
	// leastGap is the least distance of ratios between which a search tries a further one.
	leastGap = 0.01
	// edgeShare is the part of an interval of ratios, at each end of it, in which a search does not try a ratio: a line
	// through two ratios that are close to each other says little.
	edgeShare = 0.25
	// losingShare is the share of the best rate by which a ratio on trial must make less to be given up before it was
	// observed for an epoch.
	losingShare = 0.4
	// firstStep is the logarithm of the factor by which a try raises the bound of a side of which nothing is known.
	firstStep = 0.4
	againStep = 0.1  // the same for the neighbours that are tried after a rest
	againGain = 0.01 // share of the rate: a neighbour that is better by more begins a search
	firstRest = 64   // times Settle
	mostRest  = 3600 // seconds
	// If the smoothed rate of a job differs by driftShare from the rate at which the search ended, for driftSeconds,
	// conditions have changed. driftGain is the threshold for the gain that the ratio promises at which both sides are
	// done at the same time: a side that has become faster need not change the rate.
	driftShare   = 0.15
	driftGain    = 0.02
	driftSeconds = 8
	leastRate    = 1e-9 // rows a second: a job that makes nothing counts as making this
	shortEpoch   = 30   // seconds: a rate is observed for a whole epoch if epochs are shorter
	// verifySeconds is how long a search's result is observed before it stands.
	verifySeconds = 16
	mostGain      = 10 // a greater gain counts as this one
	// trustedShare is the factor by which a side may make more with all splits than its profile or its observed rate says.
	trustedShare = 1.15
	// leastBalanceMove is the least distance of the balance from the ratios that a search has tried, if it tries it.
	leastBalanceMove = 0.02
)

// Sample is a rate that is observed in intervals.
type Sample struct {
	Rows    float64 `json:"rows"`
	Seconds float64 `json:"seconds"`
	Squares float64 `json:"squares"` // sum of squares of the intervals' rates, by their seconds
	Count   float64 `json:"intervals"`
}

// addInterval adds an interval.
func (s *Sample) addInterval(rows, seconds float64) {
	s.Rows += rows
	s.Seconds += seconds
	s.Squares += float64(rows * (rows / seconds))
	s.Count++
}

// meanRate returns the rate. It returns 0 if nothing was observed.
func (s *Sample) meanRate() float64 {
	if s.Seconds == 0 {
		return 0
	}
	return s.Rows / s.Seconds
}

// standardError returns the standard error of the mean.
func (s *Sample) standardError() float64 {
	if s.Count < 2 {
		return 0
	}
	mean := s.meanRate()
	return math.Sqrt(math.Max(0, s.Squares/s.Seconds-float64(mean*mean)) / (s.Count - 1))
}

// Tried is a ratio that a search has tried, and the job's rate there.
type Tried struct {
	Ratio float64 `json:"ratio"`
	Seen  Sample  `json:"sample"`
}

// secondsPerRow returns the seconds of a row.
func (t *Tried) secondsPerRow() float64 { return 1 / math.Max(t.Seen.meanRate(), leastRate) }

// Search is the state of a search for the best ratio.
//
// The time of a row, as a function of the ratio, is convex: each bound of it (the trainer's step, the local side, the
// workers, the CPUs of the trainer's machine) is a straight line, and the greatest of such lines is convex. So the line
// through two ratios that were tried is below the time of a row beyond them, and a search knows from the ratios on both
// sides of an interval how much better a ratio inside can be at most. It tries the ratio with the highest potential,
// and ends if none promises more than potentialGain (the cutting planes of Kelley, J. SIAM 8(4), 1960, in one
// dimension). A side that has no work at all costs nothing, so 0 and 1 may be better than all ratios near them: no line
// goes through them, but a side never makes more rows a second with fewer splits than with all.
type Search struct {
	Resting  bool             `json:"resting"`    // no ratio is tried until the rest is over
	From     float64          `json:"from_ratio"` // with which the search began
	Count    int              `json:"tried_count"`
	Tried    [mostTried]Tried `json:"tried"`         // the first Count are valid, in order of the ratio
	Balanced bool             `json:"balanced"`      // the balance of both sides was tried
	Verified int              `json:"verified"`      // how often a result was observed for longer
	Rests    int              `json:"rests"`         // since conditions changed
	Rested   float64          `json:"rest_seconds"`  // so far
	Drifted  float64          `json:"drift_seconds"` // for how long the rate has differed from BaseRate
	Rate     float64          `json:"rows_per_second"`
	BaseRate float64          `json:"base_rows_per_second"` // rate when the rest began; 0: not known
	// BaseGain is the least gain that the balance of both sides has promised since BaseRate was observed.
	BaseGain float64 `json:"base_gain"`
}

// restart restarts the search, after a rest or because conditions have changed.
func (s *Search) restart(changed bool) {
	if changed {
		*s = Search{Rate: s.Rate}
		return
	}
	*s = Search{Rests: s.Rests, Rate: s.Rate, BaseRate: s.BaseRate, BaseGain: s.BaseGain}
}

// watchRest ends a rest that has lasted long enough, or during which the job's rate has moved or the gain that the
// balance of both sides promises has grown. seen is the rate at the present ratio; long reports whether it was observed
// long enough to last. watch reports whether conditions have changed.
func (s *Search) watchRest(o TunerOptions, seen Sample, long bool, promised, rate, dt float64) (changed bool) {
	promised = math.Min(promised, mostGain)
	if s.Rate == 0 {
		s.Rate = rate
	}
	s.Rate += float64((rate - s.Rate) * (1 - math.Exp(-dt/smoothingSeconds)))
	if !s.Resting {
		return false
	}
	s.Rested += dt
	if s.BaseRate == 0 && long {
		s.BaseRate, s.BaseGain = seen.meanRate(), promised
	}
	s.BaseGain = math.Min(s.BaseGain, promised)
	s.Drifted += dt
	moved := s.BaseRate > 0 && math.Abs(s.Rate-s.BaseRate) > float64(driftShare*s.BaseRate)
	if !moved && (s.BaseRate == 0 || promised-s.BaseGain < driftGain) {
		s.Drifted = 0
	}
	switch {
	case s.Drifted >= driftSeconds:
		s.restart(true)
		return true
	case s.Rested >= math.Min(math.Ldexp(firstRest*o.Settle, min(s.Rests-1, 30)), mostRest):
		s.restart(false)
	}
	return false
}

// finish ends the search.
func (s *Search) finish() {
	s.Resting, s.Rested, s.Drifted = true, 0, 0
	if s.Rests == 0 {
		s.BaseRate, s.BaseGain = 0, 0
	}
	s.Rests++
}

// recordRate adds a rate that was observed at a ratio. A full search forgets nothing, and takes no further ratio.
func (s *Search) recordRate(ratio float64, seen Sample) {
	at, there := s.placeOf(ratio)
	switch {
	case seen.Seconds == 0:
	case there:
		s.Tried[at].Seen = seen // conditions may have changed since the ratio was tried
	case s.Count < mostTried:
		copy(s.Tried[at+1:s.Count+1], s.Tried[at:s.Count])
		s.Tried[at] = Tried{ratio, seen}
		s.Count++
	}
}

// verifyRate records the rate of a search's result, which was observed for longer than before. If the rate has moved,
// the rates of the other ratios say nothing any more: the search begins again, and verify returns false.
func (s *Search) verifyRate(ratio float64, seen Sample) bool {
	s.Verified++
	at, there := s.placeOf(ratio)
	if there && math.Abs(seen.meanRate()-s.Tried[at].Seen.meanRate()) > float64(driftShare*s.Tried[at].Seen.meanRate())+
		float64(certainSpread*s.Tried[at].Seen.standardError()) {
		s.restart(true)
		return false
	}
	s.recordRate(ratio, seen)
	return true
}

// placeOf returns the place of a ratio in Tried.
func (s *Search) placeOf(ratio float64) (at int, there bool) {
	return slices.BinarySearchFunc(s.Tried[:s.Count], ratio, func(t Tried, ratio float64) int {
		return cmp.Compare(t.Ratio, ratio)
	})
}

// fastestTried returns the ratio with the highest rate. Its Seconds are 0 if no ratio was tried.
func (s *Search) fastestTried() (best Tried) {
	for _, t := range s.Tried[:s.Count] {
		if best.Seen.Seconds == 0 || t.Seen.meanRate() > best.Seen.meanRate() {
			best = t
		}
	}
	return best
}

// hasTriedNear reports whether a ratio was tried that is nearer than a distance.
func (s *Search) hasTriedNear(ratio, distance float64) bool {
	return slices.ContainsFunc(s.Tried[:s.Count], func(t Tried) bool { return math.Abs(t.Ratio-ratio) < distance })
}

// nextRatio returns the ratio to try, and the reason. ok is false if no ratio is to be tried now.
func (s *State) nextRatio(o TunerOptions, in Inputs) (target float64, why string, ok bool) {
	best := s.Search.fastestTried()
	made := best.Seen.meanRate()
	if s.Search.Count == mostTried {
		return 0, "", false
	}
	if s.Search.Rests > 0 { // the rate shows no change since the last search
		return s.nextNeighbour(o, in)
	}
	if end, rate := in.betterEnd(); !s.Search.hasTriedNear(end, math.SmallestNonzeroFloat64) && made < rate*(1-o.Gain) {
		return end, fmt.Sprintf("the job makes %.0f rows/s, and made %.0f when it was profiled at %.0f: %.3f becomes %.0f",
			made, rate, end, s.Ratio, end), true
	}
	balance, local, remote := s.balanceToTry(in)
	if !s.Search.Balanced && s.gainByRatio(in, best.Ratio, balance) >= o.Gain &&
		!s.Search.hasTriedNear(balance, leastBalanceMove) {
		s.Search.Balanced = true
		return balance, fmt.Sprintf("the trainer lacked mini-batches: local %.0f rows/s, remote %.0f: %.3f becomes %.3f",
			local, remote, s.Ratio, balance), true
	}
	target, potential := s.mostPromising(in)
	if potential < made*(1+potentialGain) {
		return 0, "", false
	}
	return target, fmt.Sprintf("the job makes %.0f rows/s at %.3f, and at most %.0f at %.3f, which it tries", made,
		best.Ratio, potential, target), true
}

// balanceToTry returns the balance of both sides, and their rates. A side that shares the CPUs of the trainer's machine
// makes less when it works all the time than while it works, and at most what the profile measured.
func (s *State) balanceToTry(in Inputs) (balance, local, remote float64) {
	local, remote = s.ratesOfSides(in)
	if in.LocalThroughput > 0 {
		local = math.Min(local, in.LocalThroughput)
	}
	if in.RemoteThroughput > 0 {
		remote = math.Min(remote, in.RemoteThroughput)
	}
	if local == 0 || remote == 0 {
		return s.balancedRatio(in), local, remote
	}
	return shareWithin(remote / (local + remote)), local, remote
}

// nextNeighbour returns the next neighbour of the ratio with which a search after a rest began. If a neighbour is
// better, the search goes on as a first one.
func (s *State) nextNeighbour(o TunerOptions, in Inputs) (target float64, why string, ok bool) {
	for _, step := range []float64{againStep, -againStep} {
		if target = neighbourRatio(s.Search.From, step); !s.Search.hasTriedNear(target, math.SmallestNonzeroFloat64) {
			return target, fmt.Sprintf("the trainer lacked mini-batches at %.3f: it tries %.3f", s.Search.From, target), true
		}
	}
	at, _ := s.Search.placeOf(s.Search.From)
	if best := s.Search.fastestTried(); best.Seen.meanRate() <= s.Search.Tried[at].Seen.meanRate()*(1+againGain) {
		return 0, "", false
	}
	s.Search.Rests = 0
	return s.nextRatio(o, in)
}

// neighbourRatio returns the ratio at which the local side's bound, Local/(1-ratio), is higher by a step or, if the
// step is negative, the workers' bound, Remote/ratio, is. It returns 0 or 1 if the ratio would be near that end.
func neighbourRatio(ratio, step float64) float64 {
	if step > 0 {
		ratio = 1 - float64((1-ratio)*math.Exp(-step))
	} else {
		ratio *= math.Exp(step)
	}
	switch {
	case step > 0 && ratio > 1-endShare:
		return 1
	case step < 0 && ratio < endShare:
		return 0
	}
	return ratio
}

// line is a straight line that is nowhere above the time of a row, over an interval of ratios.
type line struct{ ratio, time, slope float64 }

func (l line) rateAt(ratio float64) float64 { return l.time + float64(l.slope*(ratio-l.ratio)) }

// mostPromising returns the untried ratio with the highest potential, and the rate that is possible there.
func (s *State) mostPromising(in Inputs) (target, potential float64) {
	for i := range s.Search.Count + 1 {
		low, high := 0.0, 1.0
		if i > 0 {
			low = s.Search.Tried[i-1].Ratio
		}
		if i < s.Search.Count {
			high = s.Search.Tried[i].Ratio
		}
		if high-low < leastGap {
			continue
		}
		if at, rate := s.potentialBetween(in, i); rate > potential {
			target, potential = at, rate
		}
	}
	return target, potential
}

// potentialBetween returns the ratio between two neighbours in Tried at which the job may be fastest, and the rate that
// is possible there. i is the place of the upper neighbour.
func (s *State) potentialBetween(in Inputs, i int) (ratio, rate float64) {
	low, high := s.lowerLine(in, i), s.upperLine(in, i)
	switch {
	case low == nil:
		ratio = neighbourRatio(high.ratio, -firstStep)
		return ratio, in.rateForTime(high.rateAt(ratio))
	case high == nil:
		ratio = neighbourRatio(low.ratio, firstStep)
		return ratio, in.rateForTime(low.rateAt(ratio))
	case low.slope >= 0 && high.slope >= 0:
		ratio = low.ratio
	case low.slope <= 0 && high.slope <= 0:
		ratio = high.ratio
	default: // where the lines meet
		ratio = (high.rateAt(0) - low.rateAt(0)) / (low.slope - high.slope)
		ratio = math.Min(math.Max(ratio, low.ratio), high.ratio)
	}
	rate = in.rateForTime(math.Max(low.rateAt(ratio), high.rateAt(ratio)))
	edge := float64(edgeShare * (high.ratio - low.ratio))
	least, most := s.plausibleRatios(in)
	switch tried := s.Search.Tried[:s.Search.Count]; {
	case i == 0 && ratio < endShare:
		return 0, rate
	case i == len(tried) && ratio > 1-endShare:
		return 1, rate
	case i > 0 && ratio < low.ratio+edge:
		ratio = math.Max(ratio, math.Min(low.ratio+edge, most))
	case i < len(tried) && ratio > high.ratio-edge:
		ratio = math.Min(ratio, math.Max(high.ratio-edge, least))
	}
	return ratio, rate
}

// plausibleRatios returns the ratios between which neither side takes longer than the best ratio has taken, if it makes
// as much as may be expected of it at most.
func (s *State) plausibleRatios(in Inputs) (least, most float64) {
	best := s.Search.fastestTried()
	time := best.secondsPerRow()
	local, remote := s.trustedRates(in)
	least, most = 0, 1
	if local > 0 {
		least = math.Max(1-float64(local*time), 0)
	}
	if remote > 0 {
		most = math.Min(float64(remote*time), 1)
	}
	return least, most
}

// trustedRates returns the greatest rates that may be expected of the sides with all splits; 0: not known.
func (s *State) trustedRates(in Inputs) (local, remote float64) {
	return trustedShare * math.Max(in.LocalThroughput, s.Local), trustedShare * math.Max(in.RemoteThroughput, s.Remote)
}

// lowerLine returns the line that goes up from the lower neighbour of place i in Tried. It returns nil if the lower
// neighbour is 0, was not tried, and nothing is known of the local side.
func (s *State) lowerLine(in Inputs, i int) *line {
	tried := s.Search.Tried[:s.Search.Count]
	if i == 0 {
		rate, _ := s.trustedRates(in)
		if rate == 0 {
			return nil
		}
		return &line{0, 1 / rate, -1 / rate}
	}
	l := line{ratio: tried[i-1].Ratio, time: tried[i-1].secondsPerRow()}
	l.slope = -l.time / (1 - l.ratio)
	if i > 1 && tried[i-2].Ratio > 0 {
		l.slope = math.Max(l.slope, (l.time-tried[i-2].secondsPerRow())/(l.ratio-tried[i-2].Ratio))
	}
	return &l
}

// upperLine returns the line that goes down from the upper neighbour of place i in Tried, as lower does.
func (s *State) upperLine(in Inputs, i int) *line {
	tried := s.Search.Tried[:s.Search.Count]
	if i == len(tried) {
		_, rate := s.trustedRates(in)
		if rate == 0 {
			return nil
		}
		return &line{1, 1 / rate, 1 / rate}
	}
	l := line{ratio: tried[i].Ratio, time: tried[i].secondsPerRow()}
	l.slope = l.time / l.ratio
	if i+1 < len(tried) && tried[i+1].Ratio < 1 {
		l.slope = math.Min(l.slope, (tried[i+1].secondsPerRow()-l.time)/(tried[i+1].Ratio-l.ratio))
	}
	return &l
}

// rateForTime returns the rate for a time of a row. The rate is at most the trainer's.
func (in *Inputs) rateForTime(time float64) float64 {
	rate := 1 / math.Max(time, 1/most)
	if in.TrainerThroughput > 0 {
		return math.Min(rate, in.TrainerThroughput)
	}
	return rate
}
