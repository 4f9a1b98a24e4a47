package autoscale

import (
	"fmt"
	"math"
)

// Constants of the law of a pool.
const (
	poolUp      = 3    // seconds that workers are missing before some are started
	poolSettle  = 5    // seconds after a change in which nothing is stopped
	poolBusy    = 0.95 // the most that the busiest resource of the remaining workers may be used
	poolIdle    = 0.5  // workers that are used less, and whose mini-batches wait, are enough
	poolWaiting = 1    // mini-batches that wait in each worker: more are not taken any faster
)

// DefaultPoolIdle is for how many seconds there have to be too many workers before some are stopped.
const DefaultPoolIdle = 30.0

// PoolInputs holds the observations of a pool of workers without data at one moment, as DPP's Master has them of its
// Workers (III-B): utilisation of CPU, memory and network, and buffered tensors.
type PoolInputs struct {
	Seconds  float64 `json:"seconds"`      // since any fixed moment; grows
	Wanted   int     `json:"wanted"`       // workers that jobs want, all jobs together
	Live     int     `json:"live"`         // workers that take work
	Pooled   int     `json:"pooled"`       // The pool started Pooled workers of Live, and may stop them.
	Idle     float64 `json:"idle_seconds"` // workers are stopped after there were too many for this time
	Starting int     `json:"starting"`     // These were started and have not joined yet.
	Least    int     `json:"least"`        // workers that are kept even if jobs want fewer
	Most     int     `json:"most"`         // workers that may live
	CPU      float64 `json:"cpu"`          // mean shares of their machines that live workers use, 0 to 1; 0: not known
	Memory   float64 `json:"memory"`
	Network  float64 `json:"network"`
	Buffered float64 `json:"buffered_batches"` // mini-batches that wait in a worker, the mean
}

// PoolState is the memory of the law from decision to decision.
type PoolState struct {
	Seconds float64 `json:"seconds"`         // Seconds is the time of the last decision.
	Short   float64 `json:"short_seconds"`   // for how long workers have been missing
	Surplus float64 `json:"surplus_seconds"` // for how long there have been too many
	// Unwanted is for how long no job has wanted a worker.
	Unwanted float64 `json:"unwanted_seconds,omitempty"`
	Changed  float64 `json:"changed_at_seconds"` // when workers were started or stopped last
	Begun    bool    `json:"begun"`
}

// PoolDecision is how many workers are started or stopped now.
type PoolDecision struct {
	Start int       `json:"start"`
	Stop  int       `json:"stop"`
	Why   string    `json:"why"`
	Held  bool      `json:"held,omitempty"` // workers are missing or too many for long enough, and Why keeps their number
	After PoolState `json:"after"`
}

// busiest is the share of the resource that is used most; 0: not known.
func (in PoolInputs) busiest() float64 {
	share := 0.0
	for _, v := range []float64{in.CPU, in.Memory, in.Network} {
		if v > 0 && !math.IsInf(v, 0) {
			share = max(share, min(v, 1))
		}
	}
	return share
}

// DecidePool decides how many workers to start or stop, so that there are as many as jobs want, within the bounds. It
// is a function of its arguments alone.
//
// Workers are started when they have been missing for a while. A start at most doubles their number, or starts the
// first; the job's least number is started at once. No worker is started while the live ones are less than half busy
// and their mini-batches wait: something else then slows the trainers down. Workers are stopped when a surplus has
// lasted longer. A stop takes at most half of the workers, and leaves the others less than 95 % busy. If no job wants a
// worker, nothing is lost with any of them, and all but the least number are stopped at once.
func DecidePool(s PoolState, in PoolInputs) PoolDecision {
	dt := in.Seconds - s.Seconds
	if !s.Begun || !(dt > 0) {
		dt = 0
	}
	s.Seconds, s.Begun = in.Seconds, true
	if s.Unwanted += dt; in.Wanted > 0 {
		s.Unwanted = 0
	}
	least := max(in.Least, 0)
	want := min(max(in.Wanted, least), max(in.Most, least))
	have := max(in.Live, 0) + max(in.Starting, 0)
	switch {
	case want > have:
		s.Short, s.Surplus = s.Short+dt, 0
		return startWorkers(s, in, want, have)
	case want < have:
		s.Short, s.Surplus = 0, s.Surplus+dt
		d := stopWorkers(s, in, want, have)
		if d.Stop > 0 && in.Pooled <= 0 {
			return PoolDecision{Why: d.Why + ", of which the pool started none", Held: true, After: s}
		}
		d.Stop = min(d.Stop, in.Pooled)
		return d
	}
	s.Short, s.Surplus = 0, 0
	return PoolDecision{Why: fmt.Sprintf("%d workers, as many as are needed", have), After: s}
}

func startWorkers(s PoolState, in PoolInputs, want, have int) PoolDecision {
	keep := func(why string) PoolDecision { return PoolDecision{Why: why, After: s} }
	switch busy := in.busiest(); {
	case have >= in.Least && s.Short < poolUp:
		return keep(fmt.Sprintf("%d workers are missing for %.1f s", want-have, s.Short))
	case have >= in.Least && in.Live > 0 && busy > 0 && busy < poolIdle && in.Buffered >= poolWaiting:
		d := keep(fmt.Sprintf("%d workers are needed, but the %d that live are %.0f%% busy and mini-batches wait in "+
			"them: something else holds the trainers up", want, in.Live, 100*busy))
		d.Held = true
		return d
	}
	n := min(want-have, max(have, 1, in.Least-have))
	s.Short, s.Changed = 0, in.Seconds
	return PoolDecision{Start: n, Why: fmt.Sprintf("%d workers are needed, and there are %d", want, have), After: s}
}

func stopWorkers(s PoolState, in PoolInputs, want, have int) PoolDecision {
	keep := func(why string) PoolDecision { return PoolDecision{Why: why, After: s} }
	switch {
	case in.Wanted <= 0 && s.Unwanted >= in.Idle && in.Seconds-s.Changed >= poolSettle && in.Live > want:
		why := fmt.Sprintf("no job has wanted a worker for %.0f s, and there are %d", s.Unwanted, have)
		s.Surplus, s.Unwanted, s.Changed = 0, 0, in.Seconds
		return PoolDecision{Stop: in.Live - want, Why: why, After: s}
	case in.Starting > 0:
		return keep(fmt.Sprintf("%d workers are needed, and %d are starting", want, in.Starting))
	case in.Live > in.Most && in.Most >= in.Least: // an operator has lowered the bound
	case s.Surplus < in.Idle:
		return keep(fmt.Sprintf("%d workers too many for %.1f s", have-want, s.Surplus))
	case in.Seconds-s.Changed < poolSettle:
		return keep("the last change has to settle")
	}
	left := max(want, have/2)
	if busy := in.busiest(); busy > 0 && in.Live <= in.Most {
		left = max(left, int(math.Ceil(busy*float64(in.Live)/poolBusy)))
		if left >= have {
			d := keep(fmt.Sprintf("%d workers are needed, and the %d that live use %.0f%% of their machines", want, in.Live,
				100*busy))
			d.Held = true
			return d
		}
	}
	s.Surplus, s.Changed = 0, in.Seconds
	return PoolDecision{Stop: have - left, Why: fmt.Sprintf("%d workers are needed, and there are %d", want, have),
		After: s}
}
