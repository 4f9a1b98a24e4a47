package stream

import (
	"sync/atomic"
	"time"
)

// Stopwatch measures for how long something goes on, by the monotonic clock: a change of the machine's time ends no
// connection. One goroutine at a time starts and stops it, others read it.
type Stopwatch struct {
	origin time.Time    // from which began counts; constant
	began  atomic.Int64 // when it was started, in nanoseconds; 0: it does not run
}

// Init makes the Stopwatch usable.
func (s *Stopwatch) Init() { s.origin = time.Now() }

// Start begins to measure.
func (s *Stopwatch) Start() { s.began.Store(max(int64(time.Since(s.origin)), 1)) }

// Stop ends what is measured.
func (s *Stopwatch) Stop() { s.began.Store(0) }

// Running reports whether something is measured.
func (s *Stopwatch) Running() bool { return s.began.Load() != 0 }

// Exceeds reports whether the Stopwatch has run for longer than a limit at the time now.
func (s *Stopwatch) Exceeds(limit time.Duration, now time.Time) bool {
	began := s.began.Load()
	return began != 0 && now.Sub(s.origin)-time.Duration(began) > limit
}
