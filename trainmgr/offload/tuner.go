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
	LocalRows    float64 `json:"local_rows"` // made by the trainer's own CPUs
	RemoteRows   float64 `json:"remote_rows"`
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

// known replaces values that are not numbers by 0, because JSON cannot represent them.
func (in Inputs) known() Inputs {
	for _, v := range []*float64{&in.Seconds, &in.StallSeconds, &in.LocalRows, &in.RemoteRows, &in.LocalBusy,
		&in.RemoteBusy, &in.LocalSupply, &in.RemoteSupply, &in.LocalThroughput, &in.RemoteThroughput,
		&in.TrainerThroughput} {
		if !(*v >= 0) || *v > most {
			*v = 0
		}
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
	// A change is a try until the observed rate shows a gain. Previous is the ratio before the change, and PreviousSeen
	// the rate at that ratio.
	Trying       bool    `json:"trying"`
	Previous     float64 `json:"previous_ratio"`
	PreviousSeen Sample  `json:"previous_sample"`
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
// lacked mini-batches for Up seconds without a break, the tuner searches, from the cheapest guess to the most
// expensive one:
//
//  1. the end, 0 or 1, at which the profile measured more than the job makes now;
//  2. the ratio at which both sides are done at the same time, which is Remote/(Local+Remote) of the observed rates
//     of the sides while they work;
//  3. neighbours of the ratio, in steps that become smaller until no neighbour is better (see [Search]).
//
// Each change is a try: it stays if the job is faster than before once the change has settled, and is undone
// otherwise. A try lasts until the difference exceeds the spread of the observed rates, or for mostTry times Up.
// When the search has ended, the tuner rests for a time that doubles with every search, and begins again at once if
// the rate has moved by driftShare since. While no remote worker is available the ratio is 0; when workers return,
// the earlier ratio applies again.
type Tuner struct {
	options TunerOptions
	state   State
}

// NewTuner makes a tuner that begins with the ratio of a decision.
func NewTuner(o TunerOptions, ratio float64) *Tuner {
	return &Tuner{options: o.withDefaults(), state: State{Ratio: within(ratio)}}
}

// Decide makes the next decision and remembers it.
func (t *Tuner) Decide(in Inputs) Record {
	r := Record{Options: t.options, Before: t.state, Inputs: in.known()}
	r.Decision = tune(r.Options, r.Before, r.Inputs)
	t.state = r.Decision.After
	return r
}

// tune is the law, a pure function of its arguments.
func tune(o TunerOptions, s State, in Inputs) Tuning {
	before, last := s.effective(), s.Last
	dt := in.Seconds - last.Seconds
	switch {
	case !s.Begun:
		s.Begun, s.Last, s.Away, s.Changed = true, in, in.RemoteAway, in.Seconds
		return s.conclude(before, "the ratio of the decision before the job")
	case !(dt >= leastInterval):
		return s.conclude(before, "no time has passed")
	}
	stall := math.Min(math.Max(in.StallSeconds-last.StallSeconds, 0), dt)
	local, remote := math.Max(in.LocalRows-last.LocalRows, 0), math.Max(in.RemoteRows-last.RemoteRows, 0)
	observe(&s.Local, local, in.LocalBusy-last.LocalBusy, dt)
	observe(&s.Remote, remote, in.RemoteBusy-last.RemoteBusy, dt)
	s.Last = in
	if in.RemoteAway != s.Away {
		s.Away, s.Starving, s.Changed, s.Trying = in.RemoteAway, 0, in.Seconds, false
		s.Seen, s.Search = Sample{}, Search{}
		if s.Away {
			s.Remote = 0 // other workers may return
			return s.conclude(before, "no worker is there: everything is local")
		}
		return s.conclude(before, "workers are there again")
	}
	if in.Seconds-s.Changed > o.Settle/2 {
		s.Seen.add(local+remote, dt)
	}
	s.Search.watch(o, s.Seen, s.gain(in, s.balanced(in)), (local+remote)/dt, dt)
	if s.Trying {
		if s.undecided(o, in) {
			return s.conclude(before, "a change is on trial")
		}
		if s.Trying = false; !s.gained() {
			return s.goBack(in, before)
		}
		s.Search.accept()
	}
	switch {
	case s.Away:
		return s.conclude(before, "no worker is there")
	case local+remote == 0 && stall == 0:
		s.Starving = 0
		return s.conclude(before, "the trainer takes nothing")
	case stall <= o.Stall*dt && s.Seen.mean() >= in.TrainerThroughput*(1-o.Gain/2):
		s.Starving = 0
		s.Sated += dt
		return s.conclude(before, "the trainer does not wait")
	}
	if s.Sated >= driftSeconds {
		// The rate until now was the trainer's, and says nothing about the ratio.
		s.Starving, s.Changed, s.Seen = 0, in.Seconds, Sample{}
		s.Search.begin()
		s.Search.Rests = 0
	}
	s.Sated = 0
	s.Starving += dt
	if s.Starving < o.Up || in.Seconds-s.Changed < o.Settle || s.Search.Stage == Climb && s.uncertain(o, in) {
		return s.conclude(before, fmt.Sprintf("the trainer has lacked mini-batches for %.1f s", s.Starving))
	}
	target, why, ok := s.next(o, in)
	if !ok {
		return s.conclude(before, fmt.Sprintf("the trainer lacks mini-batches, and no ratio beside %.3f is better",
			s.Ratio))
	}
	s.Trying, s.Previous, s.PreviousSeen = true, s.Ratio, s.Seen
	s.Ratio, s.Starving, s.Changed, s.Seen = target, 0, in.Seconds, Sample{}
	return s.conclude(before, why)
}

// undecided reports whether a try goes on because its rate is not known yet, or does not differ significantly from
// the earlier rate.
func (s *State) undecided(o TunerOptions, in Inputs) bool {
	elapsed := in.Seconds - s.Changed
	switch {
	case elapsed < o.Settle+o.Up || s.Seen.Seconds == 0:
		return true
	case elapsed >= o.Settle+mostTry*o.Up:
		return false
	}
	difference := math.Abs(s.Seen.mean() - s.PreviousSeen.mean())
	return difference < certainSpread*math.Hypot(s.Seen.spread(), s.PreviousSeen.spread())
}

// gained reports whether a try made the job significantly faster.
func (s *State) gained() bool {
	return s.Seen.mean() > s.PreviousSeen.mean()*(1+leastTryGain)+math.Hypot(s.Seen.spread(), s.PreviousSeen.spread())
}

// uncertain reports whether the rate at the present ratio is not known well enough yet for a comparison with a
// neighbour.
func (s *State) uncertain(o TunerOptions, in Inputs) bool {
	elapsed := in.Seconds - s.Changed
	return elapsed < o.Settle+o.Up ||
		elapsed < o.Settle+float64(mostTry*o.Up) && s.Seen.spread() > float64(certainShareOfRate*s.Seen.mean())
}

// betterEnd returns the ratio, 0 or 1, at which the profile measured the higher throughput, and that throughput.
func (in *Inputs) betterEnd() (ratio, rate float64) {
	if in.RemoteThroughput > in.LocalThroughput {
		return 1, in.RemoteThroughput
	}
	return 0, in.LocalThroughput
}

// goBack reverts a change that made the job no faster.
func (s State) goBack(in Inputs, before float64) Tuning {
	why := fmt.Sprintf("at %.3f the job made %.0f rows/s, and %.0f before: back to %.3f", s.Ratio, s.Seen.mean(),
		s.PreviousSeen.mean(), s.Previous)
	s.Search.reject()
	s.Ratio, s.Starving, s.Changed, s.Seen = s.Previous, 0, in.Seconds, Sample{}
	return s.conclude(before, why)
}

// observe updates a side's observed rate by the rows that the side made in an interval.
func observe(rate *float64, rows, busy, dt float64) {
	if rows <= 0 {
		return
	}
	seen := rows / math.Min(math.Max(busy, leastBusyShare*dt), dt)
	if *rate == 0 {
		*rate = seen
		return
	}
	*rate += float64((seen - *rate) * (1 - math.Exp(-dt/smoothingSeconds)))
}

// rateOf returns the observed rate, or the rate that the profile foretold.
func (s *State) rateOf(observed, foretold float64) float64 {
	if observed > 0 {
		return observed
	}
	return foretold
}

// balanced returns the ratio at which both sides are done at the same time, from their rates. A side whose rate is
// unknown gets a small first share.
func (s *State) balanced(in Inputs) float64 {
	local, remote := s.rateOf(s.Local, in.LocalSupply), s.rateOf(s.Remote, in.RemoteSupply)
	switch {
	case remote == 0:
		return math.Max(s.Ratio, probeRatio)
	case local == 0:
		return math.Min(s.Ratio, 1-probeRatio)
	}
	return within(remote / (local + remote))
}

// gain returns the share by which the throughput grows if target replaces the ratio. The gain is infinite if the
// ratio or target gives splits to a side whose rate is unknown.
func (s *State) gain(in Inputs, target float64) float64 {
	if target == s.Ratio {
		return 0
	}
	pace := func(ratio float64) float64 {
		pace := math.Inf(1)
		if ratio < 1 {
			pace = s.rateOf(s.Local, in.LocalSupply) / (1 - ratio)
		}
		if ratio > 0 {
			pace = math.Min(pace, s.rateOf(s.Remote, in.RemoteSupply)/ratio)
		}
		return pace
	}
	now := pace(s.Ratio)
	if now == 0 || pace(target) == 0 {
		return math.Inf(1)
	}
	return pace(target)/now - 1
}

// effective returns the ratio in force.
func (s *State) effective() float64 {
	if s.Away {
		return 0
	}
	return s.Ratio
}

// conclude makes the decision.
func (s State) conclude(before float64, why string) Tuning {
	ratio := s.effective()
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
		if got := tune(r.Options.withDefaults(), r.Before, r.Inputs.known()); got != r.Decision {
			return fmt.Errorf("%w: decision %d was %v (%s), the inputs lead to %v (%s)", ErrReplay, i,
				r.Decision.Ratio, r.Decision.Why, got.Ratio, got.Why)
		}
	}
	return nil
}
