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

// Recording says what is kept of the moments in which the trainer starves: the Go execution trace of the seconds before, as
// `go tool trace` reads it. The zero value records nothing. A process has one recorder: the first job that iterates.
type Recording struct {
	Dir string // folder for the traces, starved-TIME.trace; empty records nothing
	// After is how long the input queue stays empty under a waiting trainer before the trace is written; 0 means DefaultStarved.
	After time.Duration
}

// DefaultStarved is a wait that no trainer fails to notice.
const DefaultStarved = 200 * time.Millisecond

// Bounds of what a recorder keeps: the trace's window and size, and how many are written, how often.
const (
	recordedTime  = 5 * time.Second
	recordedBytes = 16 << 20
	mostTraces    = 10
	betweenTraces = 10 * time.Second
)

// recorder writes the flight recording when the trainer has waited too long. A nil one does nothing.
type recorder struct {
	o      Recording
	log    *slog.Logger
	flight *trace.FlightRecorder

	mu      sync.Mutex // guards what follows, and is held while a trace is written
	written int
	last    time.Time
}

// record begins recording; nil if nothing is wanted, or somebody else records.
func (r Recording) record(log *slog.Logger) *recorder {
	if r.Dir == "" {
		return nil
	}
	if r.After <= 0 {
		r.After = DefaultStarved
	}
	f := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: recordedTime, MaxBytes: recordedBytes})
	if err := f.Start(); err != nil {
		log.Warn("starving is not recorded", "error", err)
		return nil
	}
	return &recorder{o: r, log: log, flight: f}
}

// wait is called when the trainer begins to wait for a mini-batch, and what it returns when it has one.
func (r *recorder) wait() (got func()) {
	if r == nil {
		return func() {}
	}
	t := time.AfterFunc(r.o.After, r.dump)
	return func() { t.Stop() }
}

// dump writes what is recorded, unless that was done just now, or often.
func (r *recorder) dump() {
	if !r.mu.TryLock() {
		return // it is being written
	}
	defer r.mu.Unlock()
	now := time.Now()
	if r.written == mostTraces || now.Sub(r.last) < betweenTraces {
		return
	}
	r.last = now
	path, err := r.write(now)
	if err != nil {
		r.log.Warn("starving is not recorded", "error", err)
		return
	}
	r.written++
	r.log.Warn("the trainer starves: see go tool trace", "after_seconds", r.o.After.Seconds(), "trace", path)
}

func (r *recorder) write(now time.Time) (path string, err error) {
	if err := os.MkdirAll(r.o.Dir, 0o750); err != nil {
		return "", err
	}
	path = filepath.Join(r.o.Dir, "starved-"+now.UTC().Format("20060102T150405.000Z")+".trace")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	if _, err = r.flight.WriteTo(f); err != nil {
		err = fmt.Errorf("write %s: %w", path, err)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return path, err
}

// stop ends recording, after a trace that is being written.
func (r *recorder) stop() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = mostTraces
	r.flight.Stop()
}
