package tcp

import (
	"sync/atomic"
	"time"
)

// stopwatch measures for how long something goes on, by the monotonic clock: a change of the machine's time ends no
// connection. One goroutine at a time starts and stops it, others read it.
type stopwatch struct {
	origin time.Time    // from which began counts; constant
	began  atomic.Int64 // when it was started, in nanoseconds; 0: it does not run
}

// init makes the stopwatch usable.
func (s *stopwatch) init() { s.origin = time.Now() }

func (s *stopwatch) startTiming() { s.began.Store(max(int64(time.Since(s.origin)), 1)) }

func (s *stopwatch) stopTiming() { s.began.Store(0) }

func (s *stopwatch) isRunning() bool { return s.began.Load() != 0 }

// exceeds reports whether the stopwatch has run for longer than a limit at the time now.
func (s *stopwatch) exceeds(limit time.Duration, now time.Time) bool {
	began := s.began.Load()
	return began != 0 && now.Sub(s.origin)-time.Duration(began) > limit
}
