package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/host/identity"
)

// member is a process of the control plane.
type member struct {
	cmd  *exec.Cmd
	args []string
	dir  string
	url  string
	done chan struct{}
	errs *tail
}

// tail keeps the end of a process's output, and the first line that the process printed.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buf.Len() < 1<<16 {
		t.buf.Write(b)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.buf.String())
}

// startMember starts a member and waits until it is ready.
func (o *Options) startMember(ctx context.Context, id identity.Options, more ...string) (_ *member, err error) {
	dir, err := os.MkdirTemp("", "millrace-bench-control")
	if err != nil {
		return nil, err
	}
	args := append([]string{"control", "run", "--data", dir, "--output", "json", "--progress", "none"}, more...)
	if id.On() {
		args = append(args, "--cert", id.Cert, "--key", id.Key, "--ca", id.CA)
	}
	m := &member{args: args, dir: dir}
	if err := m.start(ctx, o); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (m *member) start(ctx context.Context, o *Options) error {
	m.cmd = exec.Command(o.Command[0], append(append([]string(nil), o.Command[1:]...), m.args...)...)
	m.cmd.Env = append(os.Environ(), o.Env...)
	out := &tail{}
	m.errs, m.done = &tail{}, make(chan struct{})
	m.cmd.Stdout, m.cmd.Stderr = out, m.errs
	if err := m.cmd.Start(); err != nil {
		m.cmd = nil
		return fmt.Errorf("start %s: %w", o.Command[0], err)
	}
	go func() {
		_ = m.cmd.Wait() // the process's own output says how it ended
		close(m.done)
	}()
	var ready struct {
		URL string `json:"url"`
	}
	for json.Unmarshal([]byte(out.String()), &ready) != nil || ready.URL == "" {
		select {
		case <-m.done:
			return fmt.Errorf("the control plane ended: %s", m.errs)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
	m.url = ready.URL
	return nil
}

// kill ends the process as kill -9 does.
func (m *member) kill() {
	if m.cmd == nil {
		return
	}
	_ = m.cmd.Process.Kill() // it may have ended
	<-m.done
}

func (m *member) close() error {
	m.kill()
	return os.RemoveAll(m.dir)
}

// resident reads the process's resident memory and its peak. They are 0 if the system does not report them.
func (m *member) resident() (now, most int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
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
