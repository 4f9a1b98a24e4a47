// Package lograte bounds how often a repeated event is logged, so that a peer that is refused a thousand times a second
// does not fill the log.
//
// # Overview
//
// A [Limiter] allows one line per interval and counts what it did not allow. The next line that it allows carries that
// count.
//
//	if suppressed, ok := refusals.Allow(); ok {
//		log.Warn("connection refused", "from", peer, "suppressed", suppressed)
//	}
//
// # Concurrency
//
// A Limiter may be used from any number of goroutines.
//
// # Errors
//
// There are none.
//
// # Debugging
//
// suppressed in a line of a log is the number of equal events since the line before it.
package lograte

import (
	"sync"
	"time"
)

// DefaultEvery is the interval of a Limiter that names none.
const DefaultEvery = time.Second

// DefaultBurst is the burst of a Limiter that names none.
const DefaultBurst = 10

// Limiter allows Burst lines at once and one line per interval after that. The zero value works.
type Limiter struct {
	Every time.Duration    // between lines; 0 means DefaultEvery
	Burst int              // lines at once after it was quiet; 0 means DefaultBurst
	Now   func() time.Time // nil means time.Now

	mu         sync.Mutex
	started    bool
	left       int       // lines that are allowed at once
	refilled   time.Time // when left last grew
	suppressed uint64
}

// Allow reports whether a line may be logged now, and how many were not allowed since the last that was.
func (l *Limiter) Allow() (suppressed uint64, ok bool) {
	now, every := time.Now, l.Every
	if l.Now != nil {
		now = l.Now
	}
	if every <= 0 {
		every = DefaultEvery
	}
	burst := l.Burst
	if burst <= 0 {
		burst = DefaultBurst
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := now()
	if !l.started {
		l.started, l.left, l.refilled = true, burst, at
	}
	if n := at.Sub(l.refilled) / every; n > 0 {
		l.left = int(min(int64(n)+int64(l.left), int64(burst)))
		l.refilled = l.refilled.Add(n * every)
	}
	if l.left == 0 {
		l.suppressed++
		return 0, false
	}
	l.left--
	suppressed, l.suppressed = l.suppressed, 0
	return suppressed, true
}
