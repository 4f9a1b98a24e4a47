// Package steadyrate measures the rate of work that is slow at first: work that opens files, learns sizes, and touches
// memory for the first time.
//
// The owner of a [Meter] reports every piece of work when it is finished. The Meter cuts the time into intervals and
// leaves out the intervals at the beginning that are not of the steady state, by the rule MSER (K. P. White, "An
// effective truncation heuristic for bias reduction in simulation output", Simulation 69 (1997)): of all beginnings it
// leaves out the one without which the mean of the others has the smallest standard error. The measurement ends when
// the rate is known well enough, or at a limit. A [Sampler] is a Meter that also says how counters, for example of
// processor time, grew in the time that counts.
//
// # Concurrency
//
// A Meter has no lock and no clock: its owner calls it from one goroutine at a time and says what time it is.
package steadyrate

import (
	"math"
	"time"
)

const (
	// Goal is the spread at which a rate is known well enough.
	Goal = 0.05

	intervalsInLeast = 10              // an interval takes at least this part of the least time
	leastIntervals   = 5               // that a settled rate is the mean of
	limitFactor      = 10              // the limit is this many times the least time,
	limitOver        = 5 * time.Second // or this much more than the least time, whichever is shorter
)

// Rate is what a Meter measured.
type Rate struct {
	PerSecond float64
	Count     int64         // It counts the work from From on.
	From      time.Duration // when the work that counts began
	Elapsed   time.Duration // for the work that counts
	Intervals int           // They are the intervals from From on.
	// Spread is half the width of the 95 % confidence interval of the mean of the intervals' rates, as a share of that
	// mean. It is 1 if it is larger, or unknown because fewer than two intervals count.
	Spread float64
	// Settled reports whether the spread is at most Goal over enough intervals.
	Settled bool
}

// Meter measures a rate. New makes one.
type Meter struct {
	least, limit time.Duration
	pieces       int // an interval has a multiple of this

	intervals []interval
	openFrom  time.Duration // The open interval began then.
	last      time.Duration // the latest piece of work was finished then
	count     int64         // in the open interval
	finished  int           // pieces in the open interval
	rate      Rate
}

// interval is a length of time and the work that was finished in it.
type interval struct {
	count   int64
	elapsed time.Duration
}

func (i interval) perSecond() float64 { return float64(i.count) / i.elapsed.Seconds() }

// New returns a Meter that measures for at least the given time, and at most for [Limit] of it. Where several workers
// finish their pieces at nearly the same time, workers is their number: an interval then has as many pieces of each.
func New(least time.Duration, workers int) *Meter {
	return &Meter{least: least, limit: Limit(least), pieces: max(workers, 1)}
}

// Limit returns the time after which a measurement of a least time ends, settled or not: ten times the least time, or
// five seconds more than it, whichever is shorter.
func Limit(least time.Duration) time.Duration { return min(limitFactor*least, least+limitOver) }

// Add counts a piece of work that was finished at a time since the beginning. It reports whether the measurement goes
// on. Work that counts for nothing (0) takes its time and no more.
func (m *Meter) Add(at time.Duration, count int64) (more bool) {
	m.count += count
	m.finished++
	m.last = max(m.last, at)
	elapsed := m.last - m.openFrom
	if m.finished%m.pieces == 0 && m.count > 0 && elapsed > 0 && elapsed >= m.least/intervalsInLeast {
		m.intervals = append(m.intervals, interval{m.count, elapsed})
		m.openFrom, m.count, m.finished = m.last, 0, 0
		m.rate = steady(m.intervals)
	}
	if m.last >= m.limit {
		return m.Rate().Count == 0 // something must have been counted
	}
	return m.last < m.least || !m.rate.Settled
}

// Rate returns what was measured so far. Its PerSecond is 0 if no work was finished.
func (m *Meter) Rate() Rate {
	if len(m.intervals) > 0 || m.count == 0 || m.last <= 0 {
		return m.rate
	}
	return steady([]interval{{m.count, m.last}}) // the limit came before the end of the first interval
}

// steady leaves out the beginning by MSER and returns the mean of the rest.
func steady(all []interval) Rate {
	first, least := 0, math.Inf(1)
	for skip := 0; skip == 0 || skip <= min(len(all)/2, len(all)-leastIntervals); skip++ {
		_, variance := moments(all[skip:])
		if v := variance / float64(len(all)-skip); v < least {
			first, least = skip, v
		}
	}
	rest := all[first:]
	r := Rate{Intervals: len(rest), Spread: 1}
	for _, i := range all[:first] {
		r.From += i.elapsed
	}
	for _, i := range rest {
		r.Count += i.count
		r.Elapsed += i.elapsed
	}
	r.PerSecond = float64(r.Count) / r.Elapsed.Seconds()
	if len(rest) > 1 {
		mean, variance := moments(rest)
		r.Spread = min(1, student95(len(rest)-1)*math.Sqrt(variance/float64(len(rest)))/mean)
	}
	r.Settled = len(rest) >= leastIntervals && r.Spread <= Goal
	return r
}

// moments returns the mean and the sample variance of the intervals' rates; the variance of one is 0.
func moments(list []interval) (mean, variance float64) {
	for _, i := range list {
		mean += i.perSecond()
	}
	mean /= float64(len(list))
	for _, i := range list {
		d := i.perSecond() - mean
		variance += float64(d * d)
	}
	return mean, variance / float64(max(len(list)-1, 1))
}

// student95 returns the 97.5 % quantile of Student's t distribution: by Cornish and Fisher's expansion about the normal
// quantile from four degrees of freedom on, where it is right to 2 %, and from a table below.
func student95(freedom int) float64 {
	small := [...]float64{1: 12.706, 2: 4.303, 3: 3.182}
	if freedom < len(small) {
		return small[max(freedom, 1)]
	}
	const z = 1.959964
	n := float64(freedom)
	return z + (z*z*z+z)/(4*n) + (5*z*z*z*z*z+16*z*z*z+3*z)/(96*n*n)
}
