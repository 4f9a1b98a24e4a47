package timing

import (
	"math"
	"slices"
	"time"
)

// sharedStage is a stage that the regions of a drive share. While several of them have work, each one's goes on with
// its weight's part of the stage, as in generalized processor sharing (Parekh and Gallager, 1993).
type sharedStage struct {
	weights []int
	at      time.Time // of the state
	left    []float64 // by region: seconds of work that came and is not done, of the whole stage
	done    []float64 // by region: seconds of work that was done
}

func newSharedStage(weights []int) sharedStage {
	return sharedStage{weights: weights, left: make([]float64, len(weights)), done: make([]float64, len(weights))}
}

// add adds a region's work that came at a time, and returns how much of the region's work is done when this is. Work
// that came before the state's time counts from there on.
func (s *sharedStage) add(region int, came time.Time, work float64) (target float64) {
	if came.After(s.at) {
		s.advance(came.Sub(s.at).Seconds())
		s.at = came
	}
	s.left[region] += work
	return s.done[region] + s.left[region]
}

// advance does work for so many seconds, or until there is none.
func (s *sharedStage) advance(seconds float64) {
	for seconds > 0 {
		step := s.untilOneEnds()
		if math.IsInf(step, 1) {
			return
		}
		step = min(step, seconds)
		seconds -= step
		s.step(step)
	}
}

// untilOneEnds returns in how many seconds the first region that has work has none left.
func (s *sharedStage) untilOneEnds() float64 {
	first, total := math.Inf(1), float64(s.busy())
	for i, left := range s.left {
		if left > 0 {
			first = min(first, left*total/float64(s.weights[i]))
		}
	}
	return first
}

// busy returns the weights of the regions that have work.
func (s *sharedStage) busy() (total int) {
	for i, left := range s.left {
		if left > 0 {
			total += s.weights[i]
		}
	}
	return total
}

// leastWork is work that counts as done: rounding leaves that much.
const leastWork = 1e-12

// step does work for some seconds, in which no region runs out of it.
func (s *sharedStage) step(seconds float64) {
	total := float64(s.busy())
	for i, left := range s.left {
		if left <= 0 {
			continue
		}
		part := min(left, seconds*float64(s.weights[i])/total)
		s.done[i] += part
		if s.left[i] = left - part; s.left[i] < leastWork {
			s.done[i] += s.left[i]
			s.left[i] = 0
		}
	}
}

// when returns when so much of a region's work is done, if no other work comes; ok is false if it is done already.
func (s *sharedStage) when(region int, target float64) (end time.Time, ok bool) {
	if s.done[region] >= target-leastWork {
		return time.Time{}, false
	}
	ahead := sharedStage{weights: s.weights, left: slices.Clone(s.left), done: slices.Clone(s.done)}
	passed := 0.0
	for {
		step := ahead.untilOneEnds()
		rate := float64(s.weights[region]) / float64(ahead.busy())
		if need := (target - ahead.done[region]) / rate; need <= step || math.IsInf(step, 1) {
			return s.at.Add(seconds(passed + need)), true
		}
		passed += step
		ahead.step(step)
	}
}
