package autoscale

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/trainmgr/allocation"
)

// Defaults of Options.
const (
	DefaultStall  = 0.01 // share of time
	DefaultUp     = 2    // seconds
	DefaultDown   = 10
	DefaultProbe  = 60
	DefaultSettle = 4
	DefaultSmooth = 4

	maxProbe = 3600 // seconds between tries to do with fewer
	// longestStep is for how many times Options.Down a trainer that takes nothing counts as in a long step, so that the
	// queue is as full as before the step. After that the trainer pauses.
	longestStep = 3
	fullShare   = 0.9  // of the queue's limit: above it the drives stand still now and then
	utilisation = 0.95 // the greatest utilisation at which fewer drives may work
	idle        = 0.5  // the trainer does not wait for drives that are less busy than this
	leastBusy   = 0.1  // below it the observed time is too short to divide by
)

// Options are the law's constants. The zero value works.
type Options struct {
	Stall  float64 `json:"stall_share"`    // share of time that a trainer may wait; 0 means DefaultStall
	Up     float64 `json:"up_seconds"`     // more drives after the trainer starved for this time; 0 means DefaultUp
	Down   float64 `json:"down_seconds"`   // fewer drives after a full queue for this time; 0 means DefaultDown
	Probe  float64 `json:"probe_seconds"`  // a try with fewer after a full queue for this time; 0 means DefaultProbe
	Settle float64 `json:"settle_seconds"` // nothing changes for this time after a change; 0 means DefaultSettle
	// Smooth is the time constant of the observed T and P; 0 means DefaultSmooth.
	Smooth float64 `json:"smooth_seconds,omitempty"`
}

// smooth is Smooth or its default, which records leave out.
func (o Options) smooth() float64 {
	if o.Smooth > 0 && !math.IsInf(o.Smooth, 0) {
		return o.Smooth
	}
	return DefaultSmooth
}

func (o Options) withDefaults() Options {
	set := func(v *float64, d float64) {
		if !(*v > 0) || math.IsInf(*v, 0) {
			*v = d
		}
	}
	set(&o.Stall, DefaultStall)
	set(&o.Up, DefaultUp)
	set(&o.Down, DefaultDown)
	set(&o.Probe, DefaultProbe)
	set(&o.Settle, DefaultSettle)
	return o
}

// Inputs holds the observations of a job at one moment.
type Inputs struct {
	Seconds      float64 `json:"seconds"`             // since any fixed moment; grows
	T            float64 `json:"t_rows_per_second"`   // as measured before the job, all ranks; 0: not known
	P            float64 `json:"p_rows_per_second"`   // P is that of one drive, as measured before the job; 0: not known.
	Holders      int     `json:"holders"`             // live drives that hold rows not yet delivered
	Workers      int     `json:"workers,omitempty"`   // Workers of any reach could run beside the holders.
	Startable    int     `json:"startable,omitempty"` // workers that could be started beside those
	MaxDrives    int     `json:"max_drives"`          // MaxDrives bounds both kinds together; 0: no bound.
	Running      int     `json:"running"`             // drives that work for the job now
	QueueBatches float64 `json:"queue_batches"`       // in the input queue of the rank that has least
	QueueLimit   float64 `json:"queue_limit_batches"` // This queue can hold at most QueueLimit; 0: not known.
	Blocked      bool    `json:"blocked"`             // every rank says that its queue is full
	StallSeconds float64 `json:"stall_seconds"`       // It is that of the rank that waited longest since its job began.
	Rows         float64 `json:"rows"`                // taken by all ranks since the job began; grows
	// mean share of time that the engines of the running drives worked, 0 to 1; 0: not known
	Busy float64 `json:"busy"`
}

// State is the memory of the law from decision to decision.
type State struct {
	Target   int     `json:"target"`                   // drives wanted, without the bounds; 0: nothing was decided yet
	Drives   int     `json:"drives"`                   // decided last, of both kinds
	T        float64 `json:"t_rows_per_second"`        // as seen; 0: not yet
	P        float64 `json:"p_rows_per_second"`        // as seen; 0: not yet
	Busy     float64 `json:"busy"`                     // smoothed; 0: not known
	Seconds  float64 `json:"seconds"`                  // Seconds is the time of the last decision.
	Stall    float64 `json:"stall_seconds"`            // then
	Rows     float64 `json:"rows"`                     // then
	Queue    float64 `json:"queue_batches"`            // then
	Starving float64 `json:"starving_seconds"`         // for how long
	Full     float64 `json:"full_seconds"`             // for how long
	Paused   float64 `json:"paused_seconds,omitempty"` // for how long the trainer took nothing, without a wait
	Changed  float64 `json:"changed_at_seconds"`       // when the target changed last
	Probe    float64 `json:"probe_after_seconds"`      // wait before the next try; 0: Options.Probe
	Trying   bool    `json:"trying"`                   // the last change was a try
}

// Decision is how many drives the job runs at once from now on, and how many workers of any reach beside them.
type Decision struct {
	Drives  int    `json:"drives"`
	Workers int    `json:"workers,omitempty"`
	Why     string `json:"why"`
	After   State  `json:"after"`
}

// Record is a decision with its options, state and inputs.
type Record struct {
	Options  Options  `json:"options"`
	Before   State    `json:"before"`
	Inputs   Inputs   `json:"inputs"`
	Decision Decision `json:"decision"`
}

// Controller decides for one job, decision after decision. It has one owner.
type Controller struct {
	options Options
	state   State
}

// New makes a controller that has decided nothing yet.
func New(o Options) *Controller { return &Controller{options: o.withDefaults()} }

// Decide makes the next decision and remembers it.
func (c *Controller) Decide(in Inputs) Record {
	r := Record{Options: c.options, Before: c.state, Inputs: in.known()}
	r.Decision = decide(r.Options, r.Before, r.Inputs)
	c.state = r.Decision.After
	return r
}

// known replaces values that are not numbers, which JSON cannot represent, by 0, which means not known.
func (in Inputs) known() Inputs {
	for _, v := range []*float64{&in.Seconds, &in.T, &in.P, &in.QueueBatches, &in.QueueLimit, &in.StallSeconds,
		&in.Rows, &in.Busy} {
		if !(*v >= 0) || math.IsInf(*v, 0) {
			*v = 0
		}
	}
	in.Holders, in.MaxDrives, in.Running = max(in.Holders, 0), max(in.MaxDrives, 0), max(in.Running, 0)
	in.Workers, in.Startable = max(in.Workers, 0), max(in.Startable, 0)
	return in
}

// bound is the most drives and workers that can run.
func (in Inputs) bound() int {
	n := in.Holders + in.others()
	if in.MaxDrives > 0 {
		n = min(n, in.MaxDrives)
	}
	return max(n, 1)
}

// others counts the workers of any reach that run, or that can be started.
func (in Inputs) others() int { return in.Workers + in.Startable }

// decide is the law, a function of its arguments alone. Drives that hold partitions come first, and workers of any
// reach make up the rest of the decided number.
func decide(o Options, s State, in Inputs) Decision {
	d := decideBoth(o, s, in)
	if most := max(in.Holders, 1); in.others() > 0 && d.Drives > in.Holders {
		d.Workers, d.Drives = d.Drives-in.Holders, min(d.Drives, most)
	}
	return d
}

// decideBoth decides how many drives and workers there are in all.
func decideBoth(o Options, s State, in Inputs) Decision {
	bound := in.bound()
	if s.Target == 0 {
		return first(s, in, bound)
	}
	dt := in.Seconds - s.Seconds
	if !(dt > 0) {
		return conclude(s, bound, "no time has passed")
	}
	rows, stall := math.Max(in.Rows-s.Rows, 0), math.Min(math.Max(in.StallSeconds-s.Stall, 0), dt)
	s.Seconds, s.Rows, s.Stall, s.Queue = in.Seconds, in.Rows, in.StallSeconds, in.QueueBatches

	starving := stall > o.Stall*dt || in.QueueBatches < 1
	full := in.Blocked || in.QueueLimit > 0 && in.QueueBatches >= fullShare*in.QueueLimit
	s.learn(in, rows, stall, dt, o.smooth(), starving && !full)
	if rows > 0 || stall > 0 {
		s.Paused = 0
	}
	switch {
	case rows == 0 && stall == 0:
		s.Starving = 0
		if s.Paused += dt; s.Paused >= longestStep*o.Down {
			s.Full = 0
		}
		return conclude(s, bound, "the trainer takes nothing")
	case starving:
		s.Starving, s.Full = s.Starving+dt, 0
	case full:
		s.Starving, s.Full = 0, s.Full+dt
	default:
		s.Starving, s.Full = 0, 0
	}
	if n := min(s.Target, bound); n != s.Drives { // the bound moved
		return change(s, in, s.Target, bound, boundWords(in))
	}
	t, p := s.T, s.P
	if t == 0 {
		t = in.T
	}
	if p == 0 {
		p = in.P
	}
	if since := in.Seconds - s.Changed; since < o.Settle {
		return conclude(s, bound, fmt.Sprintf("%.1f s since the last change: let it settle", since))
	}
	switch {
	case s.Starving >= o.Up:
		return more(o, s, in, bound, t, p)
	case s.Full >= o.Down && s.Target > 1:
		return fewer(o, s, in, bound, t, p)
	case s.Starving > 0:
		return conclude(s, bound, fmt.Sprintf("the queue has been near empty for %.1f s", s.Starving))
	case s.Full > 0:
		return conclude(s, bound, fmt.Sprintf("the queue has been full for %.1f s", s.Full))
	}
	return conclude(s, bound, "the queue is above zero")
}

// first decides before the first observation.
func first(s State, in Inputs, bound int) Decision {
	s.Seconds, s.Rows, s.Stall, s.Queue, s.Changed = in.Seconds, in.Rows, in.StallSeconds, in.QueueBatches, in.Seconds
	if n := allocation.WorkersFor(in.T, in.P); n > 0 {
		s.Target = n
		return conclude(s, bound, fmt.Sprintf("T/P = %.0f/%.0f", in.T, in.P))
	}
	s.Target = bound
	switch {
	case in.others() > 0 && in.Holders > 0:
		s.Target = min(bound, in.Holders) // workers of any reach make the throughput that holders cannot sustain
	case in.Startable > 0:
		s.Target = min(bound, max(in.Workers, 1)) // more are started when the trainer starves
	}
	return conclude(s, bound, "T or P is not known: every holder runs")
}

// learn updates the observed T and P, with a time constant.
func (s *State) learn(in Inputs, rows, stall, dt, over float64, starving bool) {
	if starving { // earlier observations are no longer valid
		over /= 4
	}
	smooth := func(v *float64, seen float64) {
		if math.IsInf(seen, 0) {
			return
		}
		if *v == 0 {
			*v = seen
			return
		}
		*v += (seen - *v) * (1 - math.Exp(-dt/over))
	}
	// If the trainer waited for nearly all of the step, the remaining time is too short to divide by.
	if rows > 0 && stall < 0.9*dt {
		smooth(&s.T, rows/(dt-stall))
	}
	if in.Busy > 0 {
		smooth(&s.Busy, math.Min(in.Busy, 1))
	} else {
		s.Busy = 0
	}
	switch each := rows / dt / float64(max(in.Running, 1)); {
	case rows == 0 || in.Running == 0:
	case in.Busy >= leastBusy:
		smooth(&s.P, each/math.Min(in.Busy, 1))
	case in.Busy == 0 && starving && stall > 0:
		smooth(&s.P, each)
	}
}

func more(o Options, s State, in Inputs, bound int, t, p float64) Decision {
	switch {
	case s.Target >= bound && in.MaxDrives > 0 && in.MaxDrives <= in.Holders+in.others():
		return conclude(s, bound, fmt.Sprintf("the trainer starves, and the job allows %d drives at once", bound))
	case s.Target >= bound && in.others() > 0:
		return conclude(s, bound, fmt.Sprintf("the trainer starves, and all %d drives that hold rows and %d workers "+
			"without data run", in.Holders, in.others()))
	case s.Target >= bound:
		return conclude(s, bound, fmt.Sprintf("the trainer starves, and all %d drives that hold rows run", bound))
	case in.Busy > 0 && in.Busy < idle:
		return conclude(s, bound,
			fmt.Sprintf("the trainer starves while the drives are %.0f%% busy: something else holds them up",
				100*in.Busy))
	}
	n := max(s.Target+1, min(allocation.WorkersFor(t, p), 2*s.Target))
	if s.Trying {
		s.Probe, s.Trying = min(2*max(s.Probe, o.Probe), maxProbe), false
	}
	why := fmt.Sprintf("the trainer starved for %.1f s: %d drives become %d (T %.0f, P %.0f)", s.Starving, s.Target, n,
		t, p)
	return change(s, in, n, bound, why)
}

func fewer(o Options, s State, in Inputs, bound int, t, p float64) Decision {
	if s.Trying { // and the queue is full again: the try succeeded, and another one may
		s.Trying, s.Probe = false, o.Down
	}
	have := min(s.Target, bound)
	if have == 1 {
		return conclude(s, bound, "the queue is full with one drive")
	}
	n := have - 1
	if s.Busy > 0 {
		if would := s.Busy * float64(have) / float64(n); would > utilisation {
			return conclude(s, bound, fmt.Sprintf("the queue is full, and %d drives would be %.0f%% busy", n,
				100*would))
		}
		n = max(have/2, int(math.Ceil(s.Busy*float64(have)/utilisation)), 1)
		return change(s, in, n, bound,
			fmt.Sprintf("the queue was full for %.1f s and %d drives %.0f%% busy: %d are enough", s.Full, have,
				100*s.Busy, n))
	}
	if need := allocation.WorkersFor(t, p); need > 0 && need <= n {
		return change(s, in, n, bound,
			fmt.Sprintf("the queue was full for %.1f s: %d drives are enough (T %.0f, P %.0f)", s.Full, need, t, p))
	}
	wait := s.Probe
	if wait == 0 {
		wait = o.Probe
	}
	if s.Full >= wait {
		s.Trying = true
		return change(s, in, n, bound, fmt.Sprintf("the queue was full for %.1f s: try %d drives", s.Full, n))
	}
	return conclude(s, bound, fmt.Sprintf("the queue has been full for %.1f s, and T/P = %.0f/%.0f", s.Full, t, p))
}

// boundWords returns in words why the bound moved.
func boundWords(in Inputs) string {
	if in.others() > 0 {
		return fmt.Sprintf("%d drives hold rows, and there can be %d workers without data", in.Holders, in.others())
	}
	return fmt.Sprintf("%d drives hold rows", in.Holders)
}

// change sets another target.
func change(s State, in Inputs, n, bound int, why string) Decision {
	s.Target, s.Changed, s.Starving, s.Full = n, in.Seconds, 0, 0
	return conclude(s, bound, why)
}

// conclude applies the bounds. The target itself stays unbounded: at the end of an epoch few drives hold rows, and at
// the beginning of the next epoch all drives do.
func conclude(s State, bound int, why string) Decision {
	s.Drives = max(1, min(s.Target, bound))
	if s.Drives < s.Target {
		why += fmt.Sprintf("; %d can run", bound)
	}
	return Decision{Drives: s.Drives, Why: why, After: s}
}
