package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/internal/wait"
)

// Program says how the program millrace is run.
type Program struct {
	Command []string // the arguments of a subcommand are appended to it
	Env     []string // added to this process's environment
}

// Process is a process of the program.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	errs *output
}

// output keeps the beginning of what a process printed.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// maxOutput bounds the bytes that an output keeps.
const maxOutput = 1 << 16

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Write(b[:min(len(b), max(maxOutput-o.buf.Len(), 0))])
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(o.buf.String())
}

// Start runs a subcommand with JSON output and waits until it has printed a document, which Start decodes into ready.
func (p Program) Start(ctx context.Context, ready any, args ...string) (*Process, error) {
	args = append(append(append([]string(nil), p.Command[1:]...), args...), "--output", "json", "--progress", "none")
	out, errs := &output{}, &output{}
	s := &Process{cmd: exec.Command(p.Command[0], args...), done: make(chan struct{}), errs: errs}
	s.cmd.Env = append(os.Environ(), p.Env...)
	s.cmd.Stdout, s.cmd.Stderr = out, errs
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Command[0], err)
	}
	go func() {
		_ = s.cmd.Wait() // the process's own output says how it ended
		close(s.done)
	}()
	for {
		if text := out.String(); text != "" && json.Unmarshal([]byte(text), ready) == nil {
			return s, nil
		}
		select {
		case <-s.done:
			return nil, fmt.Errorf("%s ended: %s", p.Command[0], errs)
		case <-ctx.Done():
			s.Kill()
			return nil, context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Kill ends the process as kill -9 does, and waits for its end.
func (s *Process) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.done
}

// ProcessorTime returns the processor time that the process has used so far, user and system; 0 if it is not known.
func (s *Process) ProcessorTime() time.Duration { return processors.TimeOf(s.cmd.Process.Pid) }

// Resident returns the process's resident memory and its peak. They are 0 if the system does not report them.
func (s *Process) Resident() (now, most int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(status)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		switch {
		case err != nil:
		case f[0] == "VmRSS:":
			now = n << 10
		case f[0] == "VmHWM:":
			most = n << 10
		}
	}
	return now, most
}

// Bounds of AwaitIdle.
const (
	idleStep  = 20 * time.Millisecond
	idleShare = 10 // a process is idle if it uses less than this part of a core
	idleSteps = 100
)

// AwaitIdle waits until the process uses less than a tenth of a core, at most two seconds: for example until a node has
// made all the mini-batches that it may make ahead.
func (s *Process) AwaitIdle(ctx context.Context) error {
	for range idleSteps {
		before := s.ProcessorTime()
		if err := wait.Sleep(ctx, idleStep); err != nil {
			return err
		}
		if s.ProcessorTime()-before < idleStep/idleShare {
			return nil
		}
	}
	return nil
}
