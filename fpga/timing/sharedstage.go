package timing

import (
	"math"
	"slices"
	"time"
)

// sharedStage is a stage that the regions of a drive share. While several regions have work for it, each region gets a
// share of its time in proportion to the region's weight: generalized processor sharing (Parekh and Gallager, 1993).
type sharedStage struct {
	weights []int
	at      time.Time // the moment that left and done describe
	left    []float64 // by region: work that is waiting, in seconds that it takes with the whole stage
	done    []float64 // by region: work that was finished, in the same seconds
}

func newSharedStage(weights []int) sharedStage {
	return sharedStage{weights: weights, left: make([]float64, len(weights)), done: make([]float64, len(weights))}
}

// addWork queues work of a region that arrived at a moment, and returns the total of the region's finished work at
// which this work is finished. Work that arrived before the stage's moment is queued at the stage's moment.
func (s *sharedStage) addWork(region int, came time.Time, work float64) (target float64) {
	if came.After(s.at) {
		s.advanceTime(came.Sub(s.at).Seconds())
		s.at = came
	}
	s.left[region] += work
	return s.done[region] + s.left[region]
}

// advanceTime lets the stage work for some seconds. It returns early if no region has work left.
func (s *sharedStage) advanceTime(seconds float64) {
	for seconds > 0 {
		step := s.untilOneEnds()
		if math.IsInf(step, 1) {
			return
		}
		step = min(step, seconds)
		seconds -= step
		s.advanceWithoutEnd(step)
	}
}

// untilOneEnds returns the seconds until the first region runs out of work, and infinity if no region has work.
func (s *sharedStage) untilOneEnds() float64 {
	first, total := math.Inf(1), float64(s.weightOfBusy())
	for i, left := range s.left {
		if left > 0 {
			first = min(first, left*total/float64(s.weights[i]))
		}
	}
	return first
}

// weightOfBusy returns the sum of the weights of the regions that have work.
func (s *sharedStage) weightOfBusy() (total int) {
	for i, left := range s.left {
		if left > 0 {
			total += s.weights[i]
		}
	}
	return total
}

// leastWork is the rounding error in seconds below which work counts as finished.
const leastWork = 1e-12

// advanceWithoutEnd lets the stage work for some seconds, before the end of which no region may run out of work.
func (s *sharedStage) advanceWithoutEnd(seconds float64) {
	total := float64(s.weightOfBusy())
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

// endOfWork returns the moment at which the total of a region's finished work reaches a target if no more work arrives.
// ok is false if the total has reached it already.
func (s *sharedStage) endOfWork(region int, target float64) (end time.Time, ok bool) {
	if s.done[region] >= target-leastWork {
		return time.Time{}, false
	}
	ahead := sharedStage{weights: s.weights, left: slices.Clone(s.left), done: slices.Clone(s.done)}
	passed := 0.0
	for {
		step := ahead.untilOneEnds()
		rate := float64(s.weights[region]) / float64(ahead.weightOfBusy())
		if need := (target - ahead.done[region]) / rate; need <= step || math.IsInf(step, 1) {
			return s.at.Add(toDuration(passed + need)), true
		}
		passed += step
		ahead.advanceWithoutEnd(step)
	}
}
