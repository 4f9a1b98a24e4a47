package offload

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrReplay says that a log's decisions do not follow from its inputs.
var ErrReplay = errors.New("offload: replay")

// The constants of the law, chosen by millrace bench offload. FastFlow measures 50 to 100 steps (5.1), which take some
// seconds.
const (
	lackSeconds   = 2    // A search begins when the trainer has lacked mini-batches for this time.
	settleSeconds = 2    // After a change of the ratio, the rate of this time does not count.
	trySeconds    = 8    // A ratio on trial is observed for this time.
	verifySeconds = 16   // The result of a search is observed for this time.
	shortEpoch    = 30   // If an epoch takes fewer seconds, a ratio is observed for a whole epoch.
	smoothSeconds = 4    // This is the time constant of smoothed rates.
	firstRest     = 256  // The tuner rests for these seconds after a search, and twice as long after each further one.
	longestRest   = 3600 // A rest takes at most these seconds.
	driftSeconds  = 8    // A rate that has moved for this time ends a rest.

	leastStall     = 0.02  // A trainer that waits for a smaller share of the time lacks nothing.
	leastLack      = 0.015 // A trainer that takes less than Gthp by a smaller share lacks nothing.
	potentialGain  = 0.03  // A search tries no ratio that promises a smaller gain.
	driftShare     = 0.15  // A rate that differs by a greater share has moved.
	trustedShare   = 1.15  // A side makes at most this multiple of its profiled and its observed rate.
	leastBusyShare = 0.05  // A side that was busy for a smaller share of the time counts as busy for this share.

	probeRatio    = 0.25 // A side of which nothing is known gets at most this share.
	leastDistance = 0.02 // Ratios on trial are at least this far from each other, and from 0 and 1.
	gridSteps     = 100  // A search considers this number of ratios.
	mostTried     = 16   // A search tries at most this number of ratios.

	leastInterval = 1e-3 // A shorter time, in seconds, is too short to divide by.
	leastRate     = 1e-9 // A job that makes fewer rows a second counts as making this.
)

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
		&in.RemoteThroughput, &in.TrainerThroughput} {
		if !(*v >= 0) || *v > most {
			*v = 0
		}
	}
	if in.TrainerThroughput > 0 { // the trainer alone is not slower than with a pipeline
		in.TrainerThroughput = math.Max(in.TrainerThroughput, math.Max(in.LocalThroughput, in.RemoteThroughput))
	}
	return in
}

// Tried is a ratio at which the job's rate was observed.
type Tried struct {
	Ratio   float64 `json:"ratio"`
	Rows    float64 `json:"rows"`
	Seconds float64 `json:"seconds"`
}

// rate returns the rows a second.
func (t Tried) rate() float64 { return t.Rows / math.Max(t.Seconds, leastInterval) }

// rowSeconds returns the seconds of a row.
func (t Tried) rowSeconds() float64 { return 1 / math.Max(t.rate(), leastRate) }

// State is the memory of the law from decision to decision.
type State struct {
	Begun   bool    `json:"begun"`
	Ratio   float64 `json:"ratio"` // Ratio is in force while remote workers are available.
	Changed float64 `json:"changed_at_seconds"`
	Away    bool    `json:"away"`
	// Local, Remote and Rate are the smoothed rates of the sides while they are busy and of the job; 0: not yet.
	Local  float64 `json:"local_rows_per_second"`
	Remote float64 `json:"remote_rows_per_second"`
	Rate   float64 `json:"rows_per_second"`
	Lacked float64 `json:"lacked_seconds"` // The trainer has made less than it could for this time.
	Sated  float64 `json:"sated_seconds"`  // Before that, the trainer had all that it could take for this time.
	// Seen is what was observed at Ratio since the last change settled.
	Seen Tried `json:"seen"`
	// While Trying, Ratio is one that a search tries. The first Count of Tried are valid, in order of the ratio.
	Trying bool             `json:"trying"`
	Count  int              `json:"tried_count"`
	Tried  [mostTried]Tried `json:"tried"`
	// While Resting, nothing is tried for Rest seconds. BaseRate, BaseLocal and BaseRemote are the rates at the beginning
	// of the rest; 0: not yet.
	Resting    bool    `json:"resting"`
	Rest       float64 `json:"rest_seconds"`
	Rested     float64 `json:"rested_seconds"`
	Drifted    float64 `json:"drift_seconds"` // A rate has differed from its base for this time.
	BaseRate   float64 `json:"base_rows_per_second"`
	BaseLocal  float64 `json:"base_local_rows_per_second"`
	BaseRemote float64 `json:"base_remote_rows_per_second"`
	Last       Inputs  `json:"last"` // Last is the inputs of the previous decision.
}

// Tuning is a decision of the tuner: the ratio that applies from now on.
type Tuning struct {
	Ratio   float64 `json:"ratio"`
	Changed bool    `json:"changed"`
	Why     string  `json:"why"`
	After   State   `json:"after"`
}

// Record is a decision with its state and inputs.
type Record struct {
	Before   State  `json:"before"`
	Inputs   Inputs `json:"inputs"`
	Decision Tuning `json:"decision"`
}

// Tuner changes the ratio while a job runs, when T, the load or the workers change. It has one owner.
//
// The law: nothing changes while the trainer gets all mini-batches that it can take. If the trainer has lacked
// mini-batches for some seconds, the tuner searches: it observes the job's rate at one ratio after the other, always at
// that which promises most, until none promises a gain (see [State.potentialAt]). The ratio with the highest rate then
// applies, and the tuner rests, until a rate moves or the rest is over. While no remote worker is available the ratio
// is 0; when workers return, the earlier ratio applies again.
type Tuner struct{ state State }

// NewTuner makes a tuner that begins with the ratio of a decision.
func NewTuner(ratio float64) *Tuner { return &Tuner{State{Ratio: shareWithin(ratio)}} }

// Decide makes the next decision and remembers it.
func (t *Tuner) Decide(in Inputs) Record {
	r := Record{Before: t.state, Inputs: in.withoutUnknowns()}
	r.Decision = nextTuning(r.Before, r.Inputs)
	t.state = r.Decision.After
	return r
}

// nextTuning is the law, a pure function of its arguments.
func nextTuning(s State, in Inputs) Tuning {
	before, last := s.ratioInForce(), s.Last
	dt := in.Seconds - last.Seconds
	switch {
	case !s.Begun:
		s.Begun, s.Last, s.Away = true, in, in.RemoteAway
		s.apply(s.Ratio, in.Seconds)
		return s.conclude(before, "the ratio of the decision before the job")
	case !(dt >= leastInterval):
		return s.conclude(before, "no time has passed")
	}
	s.Last = in
	stall := math.Min(math.Max(in.StallSeconds-last.StallSeconds, 0), dt)
	taken := math.Max(in.TakenRows-last.TakenRows, 0)
	smooth(&s.Local, in.LocalRows-last.LocalRows, in.LocalBusy-last.LocalBusy, dt)
	smooth(&s.Remote, in.RemoteRows-last.RemoteRows, in.RemoteBusy-last.RemoteBusy, dt)
	smooth(&s.Rate, taken, dt, dt)
	if in.RemoteAway != s.Away {
		s.Away = in.RemoteAway
		s.forget(in.Seconds)
		if s.Away {
			s.Remote = 0 // other workers may return
			return s.conclude(before, "no worker is there: everything is local")
		}
		return s.conclude(before, "workers are there again")
	}
	if (taken > 0 || stall > 0) && in.Seconds-s.Changed > settleSeconds {
		s.Seen.Rows, s.Seen.Seconds = s.Seen.Rows+taken, s.Seen.Seconds+dt
	}
	known := s.knowsRate(in)
	if s.Resting {
		s.watchRest(known, dt, in.Seconds)
	}
	rate := s.Seen.rate()
	sated := stall <= leastStall*dt && rate >= in.TrainerThroughput*(1-leastLack)
	switch {
	case s.Away:
		return s.conclude(before, "no worker is there")
	case taken == 0 && stall == 0:
		s.Lacked = 0
		return s.conclude(before, "the trainer takes nothing")
	case s.Trying && !known:
		return s.conclude(before, fmt.Sprintf("%.3f is on trial", s.Ratio))
	case sated && !(s.Trying && s.fastest().rate() > rate): // another ratio may be faster although nobody waits
		s.Sated += dt
		s.Lacked, s.Trying = 0, false
		return s.conclude(before, "the trainer does not wait")
	}
	if s.Sated >= driftSeconds { // the rate until now was the trainer's, and says nothing about the ratio
		s.forget(in.Seconds)
	}
	s.Sated = 0
	s.Lacked += dt
	if s.Resting || s.Lacked < lackSeconds || !s.knowsRate(in) {
		return s.conclude(before, fmt.Sprintf("the trainer has lacked mini-batches for %.1f s", s.Lacked))
	}
	return s.search(in, before)
}

// search records the rate at the present ratio, and goes on to the ratio that promises most, or ends the search.
func (s State) search(in Inputs, before float64) Tuning {
	s.record()
	best := s.fastest()
	target, promised := s.mostPromising(in)
	why := fmt.Sprintf("the job makes %.0f rows/s at %.3f, and at most %.0f at %.3f, which it tries", best.rate(),
		best.Ratio, promised, target)
	s.Trying = true
	if s.Count == mostTried || promised < best.rate()*(1+potentialGain) {
		target, why = best.Ratio, fmt.Sprintf("no ratio is better than %.3f, with %.0f rows/s", best.Ratio, best.rate())
		if best.Seconds >= verifySeconds {
			s.Trying, s.Resting, s.Rested, s.Drifted = false, true, 0, 0
			s.Rest = math.Min(math.Max(firstRest, 2*s.Rest), longestRest)
			s.BaseRate = 0
		}
	}
	if target != s.Ratio {
		s.apply(target, in.Seconds)
	}
	return s.conclude(before, why)
}

// apply puts a ratio into force.
func (s *State) apply(ratio, seconds float64) {
	s.Ratio, s.Changed, s.Lacked, s.Seen = ratio, seconds, 0, Tried{Ratio: ratio}
}

// forget ends a search or a rest, because the rates that were observed say nothing any more.
func (s *State) forget(seconds float64) {
	s.Trying, s.Resting, s.Rest, s.Count, s.Tried = false, false, 0, 0, [mostTried]Tried{}
	s.apply(s.Ratio, seconds)
}

// watchRest ends a rest that is over, or during which a rate has moved. known reports whether the rates have settled.
func (s *State) watchRest(known bool, dt, seconds float64) {
	if s.BaseRate == 0 && known {
		s.Rate, s.BaseRate, s.BaseLocal, s.BaseRemote = s.Seen.rate(), s.Seen.rate(), s.Local, s.Remote
	}
	moved := func(rate, base float64) bool { return base > 0 && math.Abs(rate-base) > float64(driftShare*base) }
	s.Rested += dt
	s.Drifted += dt
	if !moved(s.Rate, s.BaseRate) && !moved(s.Local, s.BaseLocal) && !moved(s.Remote, s.BaseRemote) {
		s.Drifted = 0
	}
	rest := s.Rest
	switch {
	case s.Drifted >= driftSeconds:
		s.forget(seconds)
	case s.Rested >= rest:
		s.forget(seconds)
		s.Rest = rest // the next rest is longer
	}
}

// knowsRate reports whether the rate at the present ratio was observed for long enough: for a while, and for an epoch
// if epochs are short. An epoch begins with an empty input queue, and ends with the last splits of slow workers, so a
// part of it says little.
func (s *State) knowsRate(in Inputs) bool {
	need := float64(trySeconds)
	if _, again := s.place(s.Ratio); again {
		need = verifySeconds
	}
	fastest := math.Max(s.Seen.rate(), s.fastest().rate())
	return s.Seen.Seconds >= need && (in.EpochRows >= float64(shortEpoch*fastest) || s.Seen.Rows >= in.EpochRows)
}

// record keeps the rate at the present ratio.
func (s *State) record() {
	at, there := s.place(s.Ratio)
	if !there && s.Count < mostTried {
		copy(s.Tried[at+1:s.Count+1], s.Tried[at:s.Count])
		s.Count++
		there = true
	}
	if there {
		s.Tried[at] = s.Seen
	}
}

// place returns the place of a ratio in Tried.
func (s *State) place(ratio float64) (at int, there bool) {
	return slices.BinarySearchFunc(s.Tried[:s.Count], ratio, func(t Tried, ratio float64) int {
		return cmp.Compare(t.Ratio, ratio)
	})
}

// fastest returns the ratio with the highest rate of those that were tried.
func (s *State) fastest() (best Tried) {
	for _, t := range s.Tried[:s.Count] {
		if best.Seconds == 0 || t.rate() > best.rate() {
			best = t
		}
	}
	return best
}

// sideRates returns the most that each side may be expected to make with all splits; 0: nothing is known of the side.
func (s *State) sideRates(in Inputs) (local, remote float64) {
	local, remote = math.Max(in.LocalThroughput, s.Local), math.Max(in.RemoteThroughput, s.Remote)
	return trustedShare * cmp.Or(local, in.LocalSupply), trustedShare * cmp.Or(remote, in.RemoteSupply)
}

// potentialAt returns the highest rate that is possible at a ratio which was not tried.
//
// The time of a row, as a function of the ratio, is convex: the trainer's step, the local side, the workers and the
// CPUs of the trainer's machine each bound it by a straight line, and the greatest of such lines is convex. So the line
// through two ratios that were tried is below the time of a row beyond them (the cutting planes of Kelley, J. SIAM
// 8(4), 1960, in one dimension). A side without any work costs nothing, so 0 and 1 may be better than all ratios near
// them: no such line goes through them. But a side never makes more rows a second with fewer splits.
func (s *State) potentialAt(in Inputs, ratio float64) float64 {
	seconds := 1 / most
	least := func(bound float64) { seconds = math.Max(seconds, bound) }
	if in.TrainerThroughput > 0 {
		least(1 / in.TrainerThroughput)
	}
	local, remote := s.sideRates(in)
	if local > 0 {
		least((1 - ratio) / local)
	}
	if remote > 0 {
		least(ratio / remote)
	}
	tried := s.Tried[:s.Count]
	for i, a := range tried {
		if a.Ratio < ratio {
			least(a.rowSeconds() * (1 - ratio) / (1 - a.Ratio))
		} else {
			least(a.rowSeconds() * ratio / a.Ratio)
		}
		for _, b := range tried[i+1:] {
			if a.Ratio > 0 && b.Ratio < 1 && (ratio < a.Ratio || ratio > b.Ratio) {
				least(a.rowSeconds() + (b.rowSeconds()-a.rowSeconds())*(ratio-a.Ratio)/(b.Ratio-a.Ratio))
			}
		}
	}
	return 1 / seconds
}

// mostPromising returns the ratio to try, and the rate that is possible there; 0 if no ratio is left to try. An end
// that was faster when it was profiled comes first, because its gain is certain. Of equal ratios beside each other the
// middle is taken.
func (s *State) mostPromising(in Inputs) (target, promised float64) {
	for ratio, profiled := range [2]float64{in.LocalThroughput, in.RemoteThroughput} {
		if _, there := s.place(float64(ratio)); !there && profiled > promised {
			target, promised = float64(ratio), profiled
		}
	}
	if promised >= s.fastest().rate()*(1+potentialGain) {
		return target, promised
	}
	local, remote := s.sideRates(in)
	low, high := 0.0, 1.0
	if local == 0 {
		low = math.Min(1-probeRatio, s.Ratio)
	}
	if remote == 0 {
		high = math.Max(probeRatio, s.Ratio)
	}
	promised = 0
	last := 0.0
	for i := range gridSteps + 1 {
		ratio := float64(i) / gridSteps
		known := ratio == 0 && in.LocalThroughput > 0 || ratio == 1 && in.RemoteThroughput > 0
		if known || ratio < low || ratio > high || s.hasTriedNear(ratio) {
			continue
		}
		switch potential := s.potentialAt(in, ratio); {
		case potential > promised*(1+1e-9):
			target, last, promised = ratio, ratio, potential
		case potential > promised*(1-1e-9) && ratio-last < 1.5/gridSteps:
			last = ratio
		}
	}
	return (target + last) / 2, promised
}

// hasTriedNear reports whether a ratio is too near to one that was tried, or to an end.
func (s *State) hasTriedNear(ratio float64) bool {
	if end := math.Round(ratio); ratio != end && math.Abs(ratio-end) < leastDistance {
		return true
	}
	return slices.ContainsFunc(s.Tried[:s.Count], func(t Tried) bool { return math.Abs(t.Ratio-ratio) < leastDistance })
}

// smooth updates a rate by the rows that were made in an interval of dt seconds, of which busy were spent on them. An
// interval weighs as much as it was busy: rows count when they are done, so that a short busy time holds rows that were
// made before it.
func smooth(rate *float64, rows, busy, dt float64) {
	if rows <= 0 {
		return
	}
	busy = math.Min(math.Max(busy, leastBusyShare*dt), dt)
	seen := rows / busy
	if *rate == 0 {
		*rate = seen
		return
	}
	*rate += float64((seen - *rate) * (1 - math.Exp(-busy/smoothSeconds)))
}

// ratioInForce returns the ratio in force.
func (s *State) ratioInForce() float64 {
	if s.Away {
		return 0
	}
	return s.Ratio
}

// conclude makes the decision.
func (s State) conclude(before float64, why string) Tuning {
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
		if got := nextTuning(r.Before, r.Inputs.withoutUnknowns()); got != r.Decision {
			return fmt.Errorf("%w: decision %d was %v (%s), the inputs lead to %v (%s)", ErrReplay, i,
				r.Decision.Ratio, r.Decision.Why, got.Ratio, got.Why)
		}
	}
	return nil
}
