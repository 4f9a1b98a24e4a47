package steadyrate

import (
	"slices"
	"time"
)

// Sampler is a Meter with counters. It reads the counters with every piece of work. NewSampler makes one.
type Sampler struct {
	*Meter
	read    func() []int64
	samples []sample // in the order of time
}

// sample is the counters at a time.
type sample struct {
	at       time.Duration
	counters []int64
}

// NewSampler returns a Sampler. The function reads the counters and returns equally many each time. The first reading
// is made now, at the time 0.
func NewSampler(m *Meter, read func() []int64) *Sampler {
	return &Sampler{Meter: m, read: read, samples: []sample{{0, read()}}}
}

// Add is Meter.Add.
func (s *Sampler) Add(at time.Duration, count int64) (more bool) {
	more = s.Meter.Add(at, count)
	s.samples = append(s.samples, sample{s.last, s.read()})
	return more
}

// Growth returns by how much each counter grew in the time that counts, which Rate returns.
func (s *Sampler) Growth() []int64 {
	r := s.Rate()
	growth := slices.Clone(s.countersAt(r.From + r.Elapsed))
	for i, before := range s.countersAt(r.From) {
		growth[i] -= before
	}
	return growth
}

// countersAt returns the counters at a time at which an interval begins or ends: at such a time there is a sample.
func (s *Sampler) countersAt(at time.Duration) []int64 {
	i, _ := slices.BinarySearchFunc(s.samples, at, func(s sample, at time.Duration) int { return int(s.at - at) })
	return s.samples[min(i, len(s.samples)-1)].counters
}
