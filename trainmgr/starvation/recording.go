// Package starvation keeps Go execution traces of the seconds before a trainer starved for mini-batches.
//
// # Concurrency
//
// A [Recorder] may be used from any goroutine. A process has one at a time.
package starvation

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/trace"
	"sync"
	"time"
)

// Recording configures where to keep Go execution traces of the seconds before the trainer starved, in the format of
// `go tool trace`. The zero value records nothing. A process has one recorder, which the first job that iterates
// uses.
type Recording struct {
	Dir string // folder of the traces, starved-TIME.trace; empty records nothing
	// After is how long the trainer waits for a mini-batch before the trace is written; 0 means DefaultAfter.
	After time.Duration
}

// DefaultAfter is the wait after which the trainer starves. A wait of this length costs the trainer steps.
const DefaultAfter = 200 * time.Millisecond

// Bounds of a Recorder.
const (
	traceWindow   = 5 * time.Second  // that a trace covers
	traceBytes    = 16 << 20         // of one trace
	maxTraces     = 10               // that one recorder writes
	traceInterval = 10 * time.Second // between two traces
)

// Recorder writes a trace when the trainer has waited too long. The methods of a nil Recorder do nothing.
type Recorder struct {
	options Recording
	logger  *slog.Logger
	flight  *trace.FlightRecorder

	mu      sync.Mutex // guards the fields below, and is held while a trace is written
	written int        // traces
	last    time.Time  // when the last trace was begun
}

// Start starts recording. It returns nil if there is no folder, or if the process has a recorder already.
func (r Recording) Start(logger *slog.Logger) *Recorder {
	if r.Dir == "" {
		return nil
	}
	if r.After <= 0 {
		r.After = DefaultAfter
	}
	f := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: traceWindow, MaxBytes: traceBytes})
	if err := f.Start(); err != nil {
		logger.Warn("starving is not recorded", "error", err)
		return nil
	}
	return &Recorder{options: r, logger: logger, flight: f}
}

// WatchWait is called when the trainer begins to wait for a mini-batch. The caller calls stop when the wait is over.
func (r *Recorder) WatchWait() (stop func()) {
	if r == nil {
		return func() {}
	}
	t := time.AfterFunc(r.options.After, r.writeTrace)
	return func() { t.Stop() }
}

// writeTrace writes a trace, unless maxTraces were written or the last trace is younger than traceInterval.
func (r *Recorder) writeTrace() {
	if !r.mu.TryLock() {
		return // a trace is being written
	}
	defer r.mu.Unlock()
	now := time.Now()
	if r.written == maxTraces || now.Sub(r.last) < traceInterval {
		return
	}
	r.last = now
	path, err := r.writeFile(now)
	if err != nil {
		r.logger.Warn("starving is not recorded", "error", err)
		return
	}
	r.written++
	r.logger.Warn("the trainer starves: see go tool trace", "after_seconds", r.options.After.Seconds(), "trace", path)
}

func (r *Recorder) writeFile(now time.Time) (path string, err error) {
	if err := os.MkdirAll(r.options.Dir, 0o750); err != nil {
		return "", err
	}
	path = filepath.Join(r.options.Dir, "starved-"+now.UTC().Format("20060102T150405.000Z")+".trace")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	if _, err = r.flight.WriteTo(f); err != nil {
		err = fmt.Errorf("write %s: %w", path, err)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return path, err
}

// Stop ends recording. It waits for a trace that is being written.
func (r *Recorder) Stop() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = maxTraces
	r.flight.Stop()
}
