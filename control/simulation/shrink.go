package simulation

import "errors"

// redraws is the number of draws in which Shrink tries a smaller day.
const redraws = 3

// Shrink looks for a shorter day that violates the same property as the day of a failure. It calls more before each
// day, and ends when more returns false or when it finds nothing shorter. The result has at most as many events as the
// failure.
func Shrink(failure *Failure, more func() bool) *Failure {
	s := shrinking{first: failure, best: failure, more: more, tried: map[string]bool{}}
	if !s.take(failure.Reduction, failure.Events) {
		return failure
	}
	for events := 0; s.best.Events != events; {
		events = s.best.Events
		for s.reduce() {
		}
		s.redraw()
	}
	return s.best
}

// shrinking is the state of Shrink.
type shrinking struct {
	first, best *Failure
	hash        uint64 // The hash over all events of the best day.
	more        func() bool
	tried       map[string]bool // The key is the text of a reduction.
}

// take makes a day the best one if it violates the property of the first failure within a number of events. A day that
// has the events of the best day is not taken.
func (s *shrinking) take(r Reduction, events int) bool {
	if s.tried[r.String()] || !s.more() {
		return false
	}
	s.tried[r.String()] = true
	w := New(s.first.Seed, Options{Mutant: s.first.Mutant, Reduction: r})
	_, err := w.Run(events)
	var failure *Failure
	if !errors.As(err, &failure) || failure.Property != s.first.Property || w.Hash() == s.hash {
		return false
	}
	s.best, s.hash = failure, w.Hash()
	return true
}

// reduce takes the first smaller day that still violates the property.
func (s *shrinking) reduce() bool {
	for n := range uint64(redraws) {
		for _, r := range s.best.Reduction.smaller() {
			r.Draw += n
			if s.take(r, s.first.Events) {
				return true
			}
		}
	}
	return false
}

// redraw takes the shortest day among other draws of the best day.
func (s *shrinking) redraw() {
	r := s.best.Reduction
	for n := range uint64(20 * redraws) {
		r.Draw = n + 1
		s.take(r, s.best.Events-1)
	}
}
