package offload

import (
	"fmt"
	"math"
)

const (
	mostTry       = 10    // times Up: a try ends after this time, even if its gain is uncertain
	certainSpread = 2     // standard errors: a greater difference is significant
	leastTryGain  = 0.005 // share of the rate: a try that gains less is undone
	// certainShareOfRate is the standard error, as a share of a rate, at which the rate counts as known.
	certainShareOfRate = 0.01
	// A step is a share of the throughput. If the local side is the bottleneck, the neighbour above is better by a
	// step; if the workers are the bottleneck, the neighbour below is. So if neither neighbour at leastStep is better,
	// no ratio is better by more than leastStep.
	firstStep = 0.4
	leastStep = 0.04
	mostStep  = 1
	againStep = 0.1
	// endShare is the share of splits below which a side gets no splits.
	endShare  = 0.03
	firstRest = 64   // times Settle
	mostRest  = 3600 // seconds
	// If the smoothed rate of a job differs by driftShare from the rate at which the search ended, for driftSeconds,
	// conditions have changed. driftGain is the threshold for the gain that the ratio promises at which both sides are
	// done at the same time: a side that has become faster need not change the rate.
	driftShare   = 0.15
	driftGain    = 0.02
	driftSeconds = 8
	mostGain     = 10 // a greater gain counts as this one
	// otherEndShare is the share of the rate that the profile measured at an end, if the end is tried last.
	otherEndShare = 0.95
	// leastBalanceMove is how far the balance has moved since it was tried and rejected, if the same search tries it
	// again.
	leastBalanceMove = 0.1
)

// Sample is a rate that is observed in intervals.
type Sample struct {
	Rows    float64 `json:"rows"`
	Seconds float64 `json:"seconds"`
	Squares float64 `json:"squares"` // sum of squares of the intervals' rates, by their seconds
	Count   float64 `json:"intervals"`
}

// add adds an interval.
func (s *Sample) add(rows, seconds float64) {
	s.Rows += rows
	s.Seconds += seconds
	s.Squares += float64(rows * (rows / seconds))
	s.Count++
}

// mean returns the rate. It returns 0 if nothing was observed.
func (s *Sample) mean() float64 {
	if s.Seconds == 0 {
		return 0
	}
	return s.Rows / s.Seconds
}

// spread returns the standard error of the mean.
func (s *Sample) spread() float64 {
	if s.Count < 2 {
		return 0
	}
	mean := s.mean()
	return math.Sqrt(math.Max(0, s.Squares/s.Seconds-float64(mean*mean)) / (s.Count - 1))
}

// Stage is the kind of ratio that a search tries next.
type Stage uint8

// The stages of a search, in their order.
const (
	TryEnd      Stage = iota // the end, 0 or 1, at which the profile measured more
	TryBalance               // the ratio at which both sides are done at the same time
	Climb                    // a neighbour of the ratio
	TryOtherEnd              // the better end of the profile again, if it was about as fast as the ratio that was found
	Rest                     // no ratio until the rest is over
)

// Search is the state of a search for the best ratio. The throughput as a function of the ratio has one summit: each
// bound grows with the ratio or falls with it, and the least of such bounds has no valley. So a ratio that is better
// than both of its neighbours is within a step of the best ratio. Climb continues in a direction while the rate grows,
// and doubles the step each time. If neither neighbour is better, it halves the step until the step is below leastStep.
// A side that has no work at all costs nothing, so an end may be better than all ratios near it: if the profile
// measured about as much there, it is tried last.
type Search struct {
	Stage    Stage   `json:"stage"`
	Step     float64 `json:"step"` // share of the throughput; 0: firstStep
	Down     bool    `json:"down"` // the direction in which the next neighbour lies
	Misses   int     `json:"misses"`
	Rests    int     `json:"rests"`         // since conditions changed
	Rested   float64 `json:"rest_seconds"`  // so far
	Drifted  float64 `json:"drift_seconds"` // for how long the rate has differed from BaseRate
	Rate     float64 `json:"rows_per_second"`
	BaseRate float64 `json:"base_rows_per_second"` // rate at the ratio around which the search tries; 0: not known
	// BaseGain is the gain that the balance of both sides promised when BaseRate was observed.
	BaseGain float64 `json:"base_gain"`
	Balance  float64 `json:"balance"` // the balance that was tried last; 0: none was
}

// begin restarts the search.
func (s *Search) begin() {
	*s = Search{Rests: s.Rests, Rate: s.Rate}
}

// watch ends a rest that has lasted long enough, or during which the job's rate has moved or the gain that the balance
// of both sides promises has grown.
func (s *Search) watch(o TunerOptions, seen Sample, promised, rate, dt float64) {
	promised = math.Min(promised, mostGain)
	if s.Rate == 0 {
		s.Rate = rate
	}
	s.Rate += float64((rate - s.Rate) * (1 - math.Exp(-dt/smoothingSeconds)))
	if s.Stage != Rest {
		return
	}
	s.Rested += dt
	if s.BaseRate == 0 && seen.Seconds >= 4*smoothingSeconds {
		s.BaseRate, s.BaseGain = seen.mean(), promised
	}
	s.Drifted += dt
	if !s.moved(s.Rate, 0) && (s.BaseRate == 0 || promised-s.BaseGain < driftGain) {
		s.Drifted = 0
	}
	switch {
	case s.Drifted >= driftSeconds:
		s.begin()
		s.Rests = 0
	case s.Rested >= math.Min(math.Ldexp(firstRest*o.Settle, min(s.Rests-1, 30)), mostRest):
		s.begin()
	}
}

// moved reports whether a rate differs from the rate that the search began with at the same ratio: T, the load or the
// workers have changed.
func (s *Search) moved(rate, spread float64) bool {
	return s.BaseRate > 0 && math.Abs(rate-s.BaseRate) > float64(driftShare*s.BaseRate)+2*spread
}

// accept records that a try gained. The balance is computed again, because more of both sides' rates has been
// observed.
func (s *Search) accept() {
	s.BaseRate = 0
	switch s.Stage {
	case TryEnd:
		s.Stage = TryBalance
	case TryBalance:
		s.Step, s.Misses = 0, 0
	case TryOtherEnd:
		s.Stage, s.Step, s.Misses = Climb, againStep, 0
	case Climb:
		s.Step, s.Misses = math.Min(2*s.Step, mostStep), 0
	}
}

// reject records that a try did not gain.
func (s *Search) reject() {
	switch s.Stage {
	case Climb:
		s.miss()
	case TryOtherEnd:
		s.end()
	default:
		s.Stage++
	}
}

// miss continues with the other neighbour, or with a smaller step.
func (s *Search) miss() {
	s.Down = !s.Down
	if s.Misses++; s.Misses < 2 {
		return
	}
	s.Misses = 0
	if s.Step /= 2; s.Step < leastStep {
		s.Stage = TryOtherEnd
	}
}

// end ends the search.
func (s *Search) end() {
	s.Stage, s.Rested, s.BaseRate, s.Drifted = Rest, 0, 0, 0
	s.Rests++
}

// next returns the ratio to try, and the reason. ok is false if no ratio is to be tried now.
func (s *State) next(o TunerOptions, in Inputs) (target float64, why string, ok bool) {
	if s.Search.Stage == Rest {
		return 0, "", false
	}
	made := s.Seen.mean()
	if s.Search.moved(made, s.Seen.spread()) {
		s.Search.begin()
		s.Search.Rests = 0
	}
	s.Search.BaseRate = made
	if s.Search.Stage == TryEnd {
		end, rate := in.betterEnd()
		if s.Ratio != end && made > 0 && made < rate*(1-o.Gain) {
			return end, fmt.Sprintf("the job makes %.0f rows/s, and made %.0f when it was profiled at %.0f: "+
				"%.3f becomes %.0f", made, rate, end, s.Ratio, end), true
		}
		s.Search.Stage = TryBalance
	}
	target = s.balanced(in)
	promising := s.gain(in, target) >= o.Gain
	if promising && math.Abs(target-s.Search.Balance) >= leastBalanceMove {
		s.Search.Stage = TryBalance // which the smoothed rates did not show before
	}
	if s.Search.Stage == TryBalance {
		if promising {
			s.Search.Balance = target
			return target, fmt.Sprintf("the trainer lacked mini-batches for %.1f s: local %.0f rows/s, remote %.0f: "+
				"%.3f becomes %.3f", s.Starving, s.rateOf(s.Local, in.LocalSupply), s.rateOf(s.Remote, in.RemoteSupply),
				s.Ratio, target), true
		}
		s.Search.Stage = Climb
	}
	if s.Search.Step == 0 {
		s.Search.Step, s.Search.Down = firstStep, s.balanced(in) < s.Ratio
		if s.Search.Rests > 0 { // the rate shows no change since the last search
			s.Search.Step = againStep
		}
	}
	for s.Search.Stage == Climb {
		step := s.Search.Step
		if s.Search.Down {
			step = -step
		}
		if target = neighbour(s.Ratio, step); target != s.Ratio {
			return target, fmt.Sprintf("the trainer lacked mini-batches for %.1f s at %.0f rows/s: %.3f tries %.3f",
				s.Starving, made, s.Ratio, target), true
		}
		s.Search.miss()
	}
	if end, rate := in.betterEnd(); s.Ratio != end && rate > 0 && rate >= made*otherEndShare {
		return end, fmt.Sprintf("no ratio beside %.3f is better, and the profile made %.0f rows/s at %.0f: %.3f tries it",
			s.Ratio, rate, end, s.Ratio), true
	}
	s.Search.end()
	return 0, "", false
}

// neighbour returns the ratio at which the local side's bound, Local/(1-ratio), is higher by a step or, if the step
// is negative, the workers' bound, Remote/ratio, is. It returns 0 or 1 if the ratio would be near that end.
func neighbour(ratio, step float64) float64 {
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
