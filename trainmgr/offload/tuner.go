package offload

import (
	"errors"
	"fmt"
	"math"
)

// ErrReplay says that a log's decisions do not follow from its inputs.
var ErrReplay = errors.New("offload: replay")

// Defaults of TunerOptions.
const (
	DefaultStall  = 0.02 // share of time
	DefaultUp     = 2    // seconds
	DefaultSettle = 4
	DefaultGain   = 0.03 // of the throughput

	smoothingSeconds = 4    // time constant of the observed rates
	probeRatio       = 0.25 // the first ratio of a side whose rate is unknown
	leastBusyShare   = 0.05 // share of time: a side that was less busy counts as busy for this share
	leastInterval    = 1e-3 // seconds: a shorter time is too short to divide by
)

// TunerOptions are the constants of the tuner's law. The zero value works.
type TunerOptions struct {
	Stall  float64 `json:"stall_share"`    // share of time that a trainer may wait; 0 means DefaultStall
	Up     float64 `json:"up_seconds"`     // the ratio changes after the trainer starved for this time; 0 means DefaultUp
	Settle float64 `json:"settle_seconds"` // after a change nothing changes for this time; 0 means DefaultSettle
	Gain   float64 `json:"gain"`           // a change that gains less is not made; 0 means DefaultGain
}

func (o TunerOptions) withDefaults() TunerOptions {
	set := func(v *float64, d float64) {
		if !(*v > 0) || math.IsInf(*v, 0) {
			*v = d
		}
	}
	set(&o.Stall, DefaultStall)
	set(&o.Up, DefaultUp)
	set(&o.Settle, DefaultSettle)
	set(&o.Gain, DefaultGain)
	return o
}

// Inputs are the observations of a job at one moment. The rows, the busy times and StallSeconds count from the job's
// beginning.
type Inputs struct {
	Seconds float64 `json:"seconds"` // since any fixed moment
	// StallSeconds is how long the trainer waited for mini-batches.
	StallSeconds float64 `json:"stall_seconds"`
	TakenRows    float64 `json:"taken_rows"` // TakenRows counts the rows that the trainer has taken.
	// EpochRows is what the trainer takes in an epoch; 0 means that it is not known.
	EpochRows  float64 `json:"epoch_rows"`
	LocalRows  float64 `json:"local_rows"` // made by the trainer's own CPUs
	RemoteRows float64 `json:"remote_rows"`
	// LocalBusy is the time in which the local side was making at least one mini-batch that had room in the queue.
	LocalBusy  float64 `json:"local_busy_seconds"`
	RemoteBusy float64 `json:"remote_busy_seconds"`
	// Supplies are the rates that the profile foretold, for a side that has made nothing yet; 0: not known.
	LocalSupply  float64 `json:"local_supply_rows_per_second"`
	RemoteSupply float64 `json:"remote_supply_rows_per_second"`
	// Throughputs are the rates that the profile measured with the trainer, Lthp and Rthp; 0: not known.
	LocalThroughput  float64 `json:"local_throughput_rows_per_second"`
	RemoteThroughput float64 `json:"remote_throughput_rows_per_second"`
	// TrainerThroughput is the rate of the trainer alone, Gthp; 0: not known.
	TrainerThroughput float64 `json:"trainer_throughput_rows_per_second"`
	// RemoteAway reports whether no remote worker is available now.
	RemoteAway bool `json:"remote_away"`
}

// withoutUnknowns replaces values that are not numbers by 0, because JSON cannot represent them, and rates that
// contradict each other.
func (in Inputs) withoutUnknowns() Inputs {
	for _, v := range []*float64{&in.Seconds, &in.StallSeconds, &in.TakenRows, &in.EpochRows, &in.LocalRows,
		&in.RemoteRows, &in.LocalBusy, &in.RemoteBusy, &in.LocalSupply, &in.RemoteSupply, &in.LocalThroughput,
		&in.RemoteThroughput,
		&in.TrainerThroughput} {
		if !(*v >= 0) || *v > most {
			*v = 0
		}
	}
	if in.TrainerThroughput > 0 { // the trainer alone is not slower than with a pipeline
		in.TrainerThroughput = math.Max(in.TrainerThroughput, math.Max(in.LocalThroughput, in.RemoteThroughput))
	}
	return in
}

// State is the memory of the law from decision to decision.
type State struct {
	Begun    bool    `json:"begun"`
	Ratio    float64 `json:"ratio"`                  // in force while remote workers are available
	Local    float64 `json:"local_rows_per_second"`  // as observed while busy, smoothed; 0: not yet
	Remote   float64 `json:"remote_rows_per_second"` // as Local, for the workers
	Starving float64 `json:"starving_seconds"`       // for how long the trainer has made less than it could
	Sated    float64 `json:"sated_seconds"`          // for how long the trainer had all that it could take, before that
	Changed  float64 `json:"changed_at_seconds"`
	Away     bool    `json:"away"`
	// While Trying, the ratio is one that a search tries, and Best is the best ratio that the search has seen.
	Trying bool    `json:"trying"`
	Best   float64 `json:"best_ratio"`
	// Seen is the job's rate since the last change settled.
	Seen   Sample `json:"sample"`
	Search Search `json:"search"`
	Last   Inputs `json:"last"` // inputs of the previous decision
}

// Tuning is a decision of the tuner: the ratio that applies from now on.
type Tuning struct {
	Ratio   float64 `json:"ratio"`
	Changed bool    `json:"changed"`
	Why     string  `json:"why"`
	After   State   `json:"after"`
}

// Record is a decision with its options, state and inputs.
type Record struct {
	Options  TunerOptions `json:"options"`
	Before   State        `json:"before"`
	Inputs   Inputs       `json:"inputs"`
	Decision Tuning       `json:"decision"`
}

// Tuner changes the ratio while a job runs, when T, the load or the workers change. It has one owner.
//
// The law: nothing changes while the trainer gets all mini-batches that it can take. This is the case if the trainer
// waited for at most Stall of the time and the job makes at least Gthp less half of Gain, if Gthp is known.
// (Preprocessing beside a trainer may slow the trainer's step without making the trainer wait.) If the trainer
// lacked mini-batches for Up seconds without a break, the tuner searches: it observes the job's rate at one ratio after
// the other, until no ratio can be better by more than potentialGain (see [Search]). The first ratios are the cheapest
// guesses:
//
//  1. the end, 0 or 1, at which the profile measured more than the job makes now;
//  2. the ratio at which both sides are done at the same time, which is Remote/(Local+Remote) of the rates of the
//     sides.
//
// The ratio with the highest rate then applies, and the tuner rests for a time that doubles with every search. After
// that it tries the two neighbours of the ratio, and searches again if one of them is better. It searches at once if
// the rate has moved by driftShare. While no remote worker is available the ratio is 0; when workers return, the
// earlier ratio applies again.
type Tuner struct {
	options TunerOptions
	state   State
}

// NewTuner makes a tuner that begins with the ratio of a decision.
func NewTuner(o TunerOptions, ratio float64) *Tuner {
	return &Tuner{options: o.withDefaults(), state: State{Ratio: shareWithin(ratio)}}
}

// Decide makes the next decision and remembers it.
func (t *Tuner) Decide(in Inputs) Record {
	r := Record{Options: t.options, Before: t.state, Inputs: in.withoutUnknowns()}
	r.Decision = nextTuning(r.Options, r.Before, r.Inputs)
	t.state = r.Decision.After
	return r
}

// nextTuning is the law, a pure function of its arguments.
func nextTuning(o TunerOptions, s State, in Inputs) Tuning {
	before, last := s.ratioInForce(), s.Last
	dt := in.Seconds - last.Seconds
	switch {
	case !s.Begun:
		s.Begun, s.Last, s.Away, s.Changed = true, in, in.RemoteAway, in.Seconds
		return s.concludeTuning(before, "the ratio of the decision before the job")
	case !(dt >= leastInterval):
		return s.concludeTuning(before, "no time has passed")
	}
	stall := math.Min(math.Max(in.StallSeconds-last.StallSeconds, 0), dt)
	local, remote := math.Max(in.LocalRows-last.LocalRows, 0), math.Max(in.RemoteRows-last.RemoteRows, 0)
	observeRate(&s.Local, local, in.LocalBusy-last.LocalBusy, dt)
	observeRate(&s.Remote, remote, in.RemoteBusy-last.RemoteBusy, dt)
	s.Last = in
	if in.RemoteAway != s.Away {
		s.Away, s.Starving, s.Changed, s.Trying = in.RemoteAway, 0, in.Seconds, false
		s.Seen, s.Search = Sample{}, Search{}
		if s.Away {
			s.Remote = 0 // other workers may return
			return s.concludeTuning(before, "no worker is there: everything is local")
		}
		return s.concludeTuning(before, "workers are there again")
	}
	taken := math.Max(in.TakenRows-last.TakenRows, 0)
	wants := taken > 0 || stall > 0 // the trainer, in this interval
	if wants && in.Seconds-s.Changed > o.Settle/2 {
		s.Seen.addInterval(taken, dt)
	}
	long := s.Seen.Seconds >= verifySeconds && s.sawWholeEpoch(in)
	if long && s.Search.Resting && s.Search.BaseRate == 0 && s.Search.Verified < mostVerified {
		if target, why, ok := s.verifyResult(o, in); ok {
			s.Ratio, s.Starving, s.Changed, s.Seen = target, 0, in.Seconds, Sample{}
			return s.concludeTuning(before, why)
		}
	}
	if s.Search.watchRest(o, s.Seen, long, s.gainByRatio(in, s.Ratio, s.balancedRatio(in)), taken/dt, dt) {
		s.Seen, s.Changed = Sample{}, in.Seconds // the rate before the change says nothing about the present one
	}
	content := stall <= o.Stall*dt && s.Seen.meanRate() >= in.TrainerThroughput*(1-o.Gain/2)
	switch {
	case s.Away:
		return s.concludeTuning(before, "no worker is there")
	case !wants:
		s.Starving = 0
		return s.concludeTuning(before, "the trainer takes nothing")
	case s.Trying && !s.isRateKnown(o, in):
		return s.concludeTuning(before, fmt.Sprintf("%.3f is on trial", s.Ratio))
	case s.Trying:
		s.Search.recordRate(s.Ratio, s.Seen)
		s.Seen = Sample{}
		if best := s.Search.fastestTried(); best.Ratio != s.Ratio && content {
			content = false // the trainer does not wait, but another ratio was faster
		}
	}
	if content {
		s.Starving, s.Trying = 0, false
		s.Sated += dt
		return s.concludeTuning(before, "the trainer does not wait")
	}
	if s.Sated >= driftSeconds {
		// The rate until now was the trainer's, and says nothing about the ratio.
		s.Starving, s.Changed, s.Seen, s.Trying = 0, in.Seconds, Sample{}, false
		s.Search.restart(true)
	}
	s.Sated = 0
	s.Starving += dt
	if !s.Trying && (s.Search.Resting || s.Starving < o.Up || !s.isRateKnown(o, in)) {
		return s.concludeTuning(before, fmt.Sprintf("the trainer has lacked mini-batches for %.1f s", s.Starving))
	}
	return s.continueSearch(o, in, before)
}

// continueSearch goes on to the next ratio of a search, or ends the search.
func (s State) continueSearch(o TunerOptions, in Inputs, before float64) Tuning {
	if !s.Trying { // the first ratio of a search is the one in force
		if s.Search.Count == 0 {
			s.Search.From = s.Ratio
		}
		s.Search.recordRate(s.Ratio, s.Seen)
	}
	target, why, ok := s.nextRatio(o, in)
	best := s.Search.fastestTried()
	if !ok {
		s.Search.finish()
		target, why = best.Ratio, fmt.Sprintf("the trainer lacks mini-batches, and no ratio beside %.3f is better: "+
			"%.0f rows/s", best.Ratio, best.Seen.meanRate())
	}
	s.Best, s.Trying = best.Ratio, ok
	if target != s.Ratio {
		s.Ratio, s.Starving, s.Changed, s.Seen = target, 0, in.Seconds, Sample{}
	}
	return s.concludeTuning(before, why)
}

// verifyResult replaces the rate of a search's result by one that was observed for longer, and returns another ratio if
// that is better, or worth a try, after all.
func (s *State) verifyResult(o TunerOptions, in Inputs) (target float64, why string, ok bool) {
	if !s.Search.verifyRate(s.Ratio, s.Seen) {
		s.Seen, s.Changed = Sample{}, in.Seconds
		return 0, "", false
	}
	best := s.Search.fastestTried()
	if best.Ratio != s.Ratio && best.Seen.meanRate() > s.Seen.meanRate()*(1+leastTryGain) {
		s.Best = best.Ratio
		return best.Ratio, fmt.Sprintf("at %.3f the job made %.0f rows/s in %.0f s, and %.0f at %.3f", s.Ratio,
			s.Seen.meanRate(), s.Seen.Seconds, best.Seen.meanRate(), best.Ratio), true
	}
	rests := s.Search.Rests
	s.Search.Rests = 0
	if target, why, ok = s.nextRatio(o, in); !ok {
		s.Search.Rests = rests
		return 0, "", false
	}
	s.Search.Resting, s.Trying, s.Best = false, true, best.Ratio
	return target, why, true
}

// isRateKnown reports whether a try has shown the rate at its ratio well enough.
func (s *State) isRateKnown(o TunerOptions, in Inputs) bool {
	elapsed := in.Seconds - s.Changed
	switch {
	case elapsed < o.Settle+o.Up || s.Seen.Seconds == 0:
		return false
	case s.losesToBest(in):
		return true
	case !s.sawWholeEpoch(in):
		return false
	case elapsed >= o.Settle+float64(mostTry*o.Up),
		s.Seen.standardError() <= float64(certainShareOfRate*s.Seen.meanRate()):
		return true
	}
	best := s.Search.fastestTried()
	return s.Seen.meanRate()+float64(certainSpread*s.Seen.standardError()) < best.Seen.meanRate() // certainly lower
}

// losesToBest reports whether the present ratio makes so much less than the best one that a whole epoch need not be
// observed: the time that an epoch takes at the best ratio is enough.
func (s *State) losesToBest(in Inputs) bool {
	best := s.Search.fastestTried()
	rate := best.Seen.meanRate()
	return s.Seen.meanRate() < rate*(1-losingShare) && s.Seen.Seconds*rate >= in.EpochRows
}

// sawWholeEpoch reports whether the rate at the present ratio was observed for an epoch, if epochs are short. An epoch
// begins with an empty input queue, and ends with the last splits of slow workers, so a part of it says little.
func (s *State) sawWholeEpoch(in Inputs) bool {
	best := s.Search.fastestTried()
	fastest := math.Max(s.Seen.meanRate(), best.Seen.meanRate())
	return in.EpochRows >= float64(shortEpoch*fastest) || s.Seen.Rows >= in.EpochRows
}

// betterEnd returns the ratio, 0 or 1, at which the profile measured the higher throughput, and that throughput.
func (in *Inputs) betterEnd() (ratio, rate float64) {
	if in.RemoteThroughput > in.LocalThroughput {
		return 1, in.RemoteThroughput
	}
	return 0, in.LocalThroughput
}

// observeRate updates a side's observed rate by the rows that the side made in an interval of dt seconds.
func observeRate(rate *float64, rows, busy, dt float64) {
	if rows <= 0 {
		return
	}
	busy = math.Min(math.Max(busy, leastBusyShare*dt), dt)
	seen := rows / busy
	if *rate == 0 {
		*rate = seen
		return
	}
	// An interval weighs as much as it was busy: rows count when they are done, so that a short busy time holds rows that
	// were made before it.
	*rate += float64((seen - *rate) * (1 - math.Exp(-busy/smoothingSeconds)))
}

// rateOrForecast returns the observed rate, or the rate that the profile foretold.
func (s *State) rateOrForecast(observed, foretold float64) float64 {
	if observed > 0 {
		return observed
	}
	return foretold
}

// balancedRatio returns the ratio at which both sides are done at the same time, from their rates. A side whose rate is
// unknown gets a small first share.
func (s *State) balancedRatio(in Inputs) float64 {
	local, remote := s.ratesOfSides(in)
	switch {
	case remote == 0:
		return math.Max(s.Ratio, probeRatio)
	case local == 0:
		return math.Min(s.Ratio, 1-probeRatio)
	}
	return shareWithin(remote / (local + remote))
}

// ratesOfSides returns the rates of the sides; 0: not known.
func (s *State) ratesOfSides(in Inputs) (local, remote float64) {
	return s.rateOrForecast(s.Local, in.LocalSupply), s.rateOrForecast(s.Remote, in.RemoteSupply)
}

// gainByRatio returns the share by which the throughput grows if target replaces a ratio, by the rates of the sides.
// The gain is infinite if the ratio or target gives splits to a side whose rate is unknown.
func (s *State) gainByRatio(in Inputs, ratio, target float64) float64 {
	if target == ratio {
		return 0
	}
	local, remote := s.ratesOfSides(in)
	pace := func(ratio float64) float64 {
		pace := math.Inf(1)
		if ratio < 1 {
			pace = local / (1 - ratio)
		}
		if ratio > 0 {
			pace = math.Min(pace, remote/ratio)
		}
		return pace
	}
	now := pace(ratio)
	if now == 0 || pace(target) == 0 {
		return math.Inf(1)
	}
	return pace(target)/now - 1
}

// ratioInForce returns the ratio in force.
func (s *State) ratioInForce() float64 {
	if s.Away {
		return 0
	}
	return s.Ratio
}

// concludeTuning makes the decision.
func (s State) concludeTuning(before float64, why string) Tuning {
	ratio := s.ratioInForce()
	return Tuning{Ratio: ratio, Changed: ratio != before, Why: why, After: s}
}

// Replay computes every decision of a log again and compares the results. It also compares each state with the state
// that the previous record led to. The records belong to one job and are in order; the log may begin at any record.
func Replay(log []Record) error {
	for i, r := range log {
		if i > 0 && log[i-1].Decision.After != r.Before {
			return fmt.Errorf("%w: decision %d does not begin where the one before ended: a record is missing",
				ErrReplay, i)
		}
		if got := nextTuning(r.Options.withDefaults(), r.Before, r.Inputs.withoutUnknowns()); got != r.Decision {
			return fmt.Errorf("%w: decision %d was %v (%s), the inputs lead to %v (%s)", ErrReplay, i,
				r.Decision.Ratio, r.Decision.Why, got.Ratio, got.Why)
		}
	}
	return nil
}
