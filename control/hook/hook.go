package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/wait"
)

// ErrTimeout says that a command took too long and was killed.
var ErrTimeout = errors.New("it took too long")

// Action is the task of the command.
type Action string

// The actions.
const (
	Start Action = "start"
	Stop  Action = "stop"
)

// Call is one thing to do.
type Call struct {
	Action  Action
	Names   []string // Names are those of the workers.
	Jobs    []string // ids of the jobs that want workers
	Control string   // URL of the control plane
}

// Options configure a Hook. Command is required; the rest may be left out.
type Options struct {
	Command    string        // for the shell
	Timeout    time.Duration // One execution takes at most this time; 0: DefaultTimeout.
	Attempts   int           // One call has at most these attempts; 0: DefaultAttempts.
	Backoff    time.Duration // after the first failure, doubled after each; 0: DefaultBackoff
	Concurrent int           // executions at once; 0: DefaultConcurrent
	Logger     *slog.Logger  // nil: silent
}

// Defaults of Options.
const (
	DefaultTimeout    = time.Minute
	DefaultAttempts   = 3
	DefaultBackoff    = time.Second
	DefaultConcurrent = 4

	maxOutput = 4 << 10 // bytes of a command's output that are kept
)

// Hook runs a command.
type Hook struct {
	o    Options
	runs chan struct{} // holds an element for each execution
}

// New makes a hook.
func New(o Options) *Hook {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Attempts <= 0 {
		o.Attempts = DefaultAttempts
	}
	if o.Backoff <= 0 {
		o.Backoff = DefaultBackoff
	}
	if o.Concurrent <= 0 {
		o.Concurrent = DefaultConcurrent
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Hook{o: o, runs: make(chan struct{}, o.Concurrent)}
}

// Run runs the command for a call. After a failure it runs the command again, until the command succeeds, has failed
// Options.Attempts times, or ctx ends.
func (h *Hook) Run(ctx context.Context, call Call) error {
	var err error
	pauses := wait.Backoff{First: h.o.Backoff, Longest: h.o.Backoff << 10}
	for attempt := 1; ; attempt++ {
		if err = h.runOnce(ctx, call); err == nil {
			return nil
		}
		h.o.Logger.Warn("worker hook", "action", string(call.Action), "names", call.Names, "attempt", attempt,
			"error", err)
		if attempt == h.o.Attempts || ctx.Err() != nil {
			return fmt.Errorf("worker hook: %s %s: %d attempts: %w", call.Action, strings.Join(call.Names, " "), attempt,
				err)
		}
		_ = pauses.Sleep(ctx) // the next attempt fails when ctx has ended
	}
}

// runOnce runs the command once, when fewer than Options.Concurrent run.
func (h *Hook) runOnce(ctx context.Context, call Call) error {
	select {
	case h.runs <- struct{}{}:
		defer func() { <-h.runs }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.o.Timeout, fmt.Errorf("%w: %v", ErrTimeout, h.o.Timeout))
	defer cancel()
	var output tail
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", h.o.Command)
	cmd.Env = append(os.Environ(),
		"MILLRACE_WORKER_ACTION="+string(call.Action), "MILLRACE_WORKER_COUNT="+strconv.Itoa(len(call.Names)),
		"MILLRACE_WORKER_NAMES="+strings.Join(call.Names, " "), "MILLRACE_WORKER_JOBS="+strings.Join(call.Jobs, " "),
		"MILLRACE_WORKER_CONTROL="+call.Control)
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.WaitDelay = time.Second // a child of the command may keep its output open
	killGroup(cmd)
	begin := time.Now()
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the command succeeded, and a process that it started keeps its output open
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	if err != nil {
		if line := output.lastLine(); line != "" {
			err = fmt.Errorf("%w: it wrote %q", err, line)
		}
		return err
	}
	h.o.Logger.Info("worker hook", "action", string(call.Action), "names", call.Names, "jobs", call.Jobs,
		"took_seconds", time.Since(begin).Seconds(), "output", output.String())
	return nil
}

// tail keeps the last bytes that are written to it.
type tail struct{ kept []byte }

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if len(t.kept) > maxOutput {
		t.kept = append([]byte(nil), t.kept[len(t.kept)-maxOutput:]...)
	}
	return len(b), nil
}

// String returns the kept bytes as valid text.
func (t *tail) String() string { return strings.ToValidUTF8(string(bytes.TrimSpace(t.kept)), "?") }

func (t *tail) lastLine() string {
	text := t.String()
	return text[strings.LastIndexByte(text, '\n')+1:]
}
