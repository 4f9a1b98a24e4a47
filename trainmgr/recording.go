package trainmgr

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
	// After is how long the trainer waits for a mini-batch before the trace is written; 0 means DefaultStarved.
	After time.Duration
}

// DefaultStarved is the wait after which the trainer starves. A wait of this length costs the trainer steps.
const DefaultStarved = 200 * time.Millisecond

// Bounds of a recorder.
const (
	traceWindow   = 5 * time.Second  // that a trace covers
	traceBytes    = 16 << 20         // of one trace
	maxTraces     = 10               // that one recorder writes
	traceInterval = 10 * time.Second // between two traces
)

// recorder writes a trace when the trainer has waited too long. The methods of a nil recorder do nothing.
type recorder struct {
	options Recording
	logger  *slog.Logger
	flight  *trace.FlightRecorder

	mu      sync.Mutex // guards the fields below, and is held while a trace is written
	written int        // traces
	last    time.Time  // when the last trace was begun
}

// startRecorder starts recording. It returns nil if there is no folder, or if the process has a recorder already.
func (r Recording) startRecorder(logger *slog.Logger) *recorder {
	if r.Dir == "" {
		return nil
	}
	if r.After <= 0 {
		r.After = DefaultStarved
	}
	f := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: traceWindow, MaxBytes: traceBytes})
	if err := f.Start(); err != nil {
		logger.Warn("starving is not recorded", "error", err)
		return nil
	}
	return &recorder{options: r, logger: logger, flight: f}
}

// watchWait is called when the trainer begins to wait for a mini-batch. The caller calls stop when the wait is over.
func (r *recorder) watchWait() (stop func()) {
	if r == nil {
		return func() {}
	}
	t := time.AfterFunc(r.options.After, r.writeTrace)
	return func() { t.Stop() }
}

// writeTrace writes a trace, unless maxTraces were written or the last trace is younger than traceInterval.
func (r *recorder) writeTrace() {
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

func (r *recorder) writeFile(now time.Time) (path string, err error) {
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

// stop ends recording. It waits for a trace that is being written.
func (r *recorder) stop() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = maxTraces
	r.flight.Stop()
}
