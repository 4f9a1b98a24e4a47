package site

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/wait"
)

// startTime is how long a daemon may take until it is ready.
const startTime = 2 * time.Minute

// controlDaemon describes the control plane.
func (s *Site) controlDaemon() daemon {
	id := s.identityOf(identity.Identity{Role: identity.Control, Name: controlName})
	return daemon{"control", "control plane", []string{
		"control", "run", "--data", s.path("control"), "--listen", s.rec.Control, "--cert", id.Cert, "--key", id.Key,
		"--ca", id.CA,
	}, s.rec.Control}
}

// child is a daemon that this process started.
type child struct {
	daemon
	pid   int
	ended chan struct{} // closed when it has ended; then err is how
	err   error
}

// Start starts the daemons that do not run, each in a session of its own, and waits until the control plane lists the
// node as ready. Their logs go to log/.
func (s *Site) Start(ctx context.Context) error {
	_, err := s.start(ctx, nil)
	return err
}

// start starts daemons. If log is not nil, it gets each line that they log, beside the files.
func (s *Site) start(ctx context.Context, log io.Writer) (started []*child, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	defer func() {
		if err != nil { // the daemons that were started for nothing end
			for _, c := range started {
				_, serr := s.endDaemon(c.daemon)
				err = errors.Join(err, serr)
			}
		}
	}()
	if s.renewed { // daemons that run trust an authority that is no more
		if err := s.Stop(); err != nil {
			return nil, err
		}
		s.Steps = removeSteps(s.Steps, Absent)
	}
	for _, d := range s.daemons() {
		p, err := s.runningProcess(d)
		if err != nil {
			return started, err
		}
		if p != nil {
			if err := s.waitReady(ctx, d, nil); err != nil {
				return started, err
			}
			s.did(Runs, d.what, "https://%s, process %d", d.addr, p.PID)
			continue
		}
		c, err := s.launch(d, log)
		if err != nil {
			return started, err
		}
		started = append(started, c)
		if err := s.waitReady(ctx, d, c); err != nil {
			return started, err
		}
		s.did(Started, d.what, "https://%s, process %d, log %s", d.addr, c.pid, s.logPath(d))
	}
	return started, nil
}

// removeSteps returns the steps without those of one kind.
func removeSteps(steps []Step, did Did) []Step {
	var kept []Step
	for _, step := range steps {
		if step.Did != did {
			kept = append(kept, step)
		}
	}
	return kept
}

// logPath returns the path of a daemon's log.
func (s *Site) logPath(d daemon) string { return s.path("log", d.name+".log") }

// launch starts a daemon as a process of its own.
func (s *Site) launch(d daemon, log io.Writer) (*child, error) {
	if err := checkVacant(d); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(s.logPath(d), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the daemon has its own
	cmd := exec.Command(s.o.Program, d.args...)
	cmd.Stdout, cmd.Stderr = file, file
	var lines *os.File
	if log != nil {
		from, to, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		defer to.Close()
		cmd.Stdout, cmd.Stderr, lines = to, to, from
	}
	cmd.Env = environment(os.Environ())
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDaemon, d.what, err)
	}
	c := &child{daemon: d, pid: cmd.Process.Pid, ended: make(chan struct{})}
	noted := s.writePID(d, c.pid)
	var copied chan struct{}
	if lines != nil {
		copied = make(chan struct{})
		keep, err := os.OpenFile(s.logPath(d), os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			noted = errors.Join(noted, err)
		}
		go func() {
			defer close(copied)
			defer lines.Close()
			defer keep.Close()
			copyLines(lines, keep, log, d.name)
		}()
	}
	go func() {
		c.err = cmd.Wait()
		if copied != nil {
			<-copied
		}
		close(c.ended)
	}()
	if noted != nil {
		select {
		case <-c.ended:
		case <-time.After(time.Second): // the process lives, and without its record it could not be found again
			noted = errors.Join(noted, cmd.Process.Kill())
			<-c.ended
		}
		return nil, fmt.Errorf("%w: %s: %w%s", ErrDaemon, d.what, noted, s.logTail(d))
	}
	return c, nil
}

// environment returns the caller's environment without what would name another control plane or identity to a daemon.
func environment(all []string) []string {
	var kept []string
	for _, v := range all {
		if !strings.HasPrefix(v, "MILLRACE_C") && !strings.HasPrefix(v, "MILLRACE_KEY=") &&
			!strings.HasPrefix(v, "NOTIFY_SOCKET=") {
			kept = append(kept, v)
		}
	}
	return kept
}

// vacateTime is how long the sockets of a process that has just ended may stay in use.
const vacateTime = 3 * time.Second

// checkVacant returns an error if another process listens at a daemon's address.
func checkVacant(d daemon) error {
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		l, err := net.Listen("tcp", d.addr)
		if err == nil {
			return l.Close()
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Since(begin) > vacateTime {
			flag := map[string]string{"control": "--listen", "node": "--node-listen"}[d.name]
			return fmt.Errorf("%w: %s cannot listen at %s (%w): end what listens there, or choose another address "+
				"with %s when the site is made (port 0 picks one)",
				ErrDaemon, d.what, d.addr, err, flag)
		}
	}
}

// waitReady waits until a daemon answers that it is ready; of the node, until the control plane lists it.
func (s *Site) waitReady(ctx context.Context, d daemon, c *child) error {
	client, err := identity.HTTPClientOf(s.Identity(), identity.AcceptControl)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	var ended chan struct{}
	if c != nil {
		ended = c.ended
	}
	pauses := wait.Backoff{First: 20 * time.Millisecond, Longest: 500 * time.Millisecond}
	for {
		last := s.checkReady(ctx, client, d)
		if last == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("%w: %s ended (%s)%s", ErrDaemon, d.what, fmt.Sprint(c.err), s.logTail(d))
		case <-ctx.Done():
			return fmt.Errorf("%w: %s is not ready: %w: %w; its log is %s", ErrDaemon, d.what, context.Cause(ctx), last,
				s.logPath(d))
		case <-time.After(pauses.Next()):
		}
	}
}

// checkReady returns nil when a daemon is ready.
func (s *Site) checkReady(ctx context.Context, client *http.Client, d daemon) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if d.name == "node" {
		r, err := apiv1connect.NewControlClient(client, s.ControlURL()).ListNodes(ctx, &apiv1.ListNodesRequest{})
		if err != nil {
			return err
		}
		for _, n := range r.Nodes {
			if n.GetStatus().GetName() != nodeName {
				continue
			}
			for _, drive := range n.GetStatus().GetDrives() {
				if n.State == "ready" && drive.State == "ready" {
					return nil
				}
			}
			return fmt.Errorf("the control plane says that the node is %s", n.State)
		}
		return errors.New("the control plane does not know the node yet")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+d.addr+"/readyz", nil)
	if err != nil {
		return err
	}
	r, err := client.Do(req)
	if err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, 4<<10))
	if err = errors.Join(err, r.Body.Close()); err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers %s: %.200s", r.Status, bytes.TrimSpace(b))
	}
	return err
}

// logTail returns the last lines of a daemon's log, for an error. It reads only the end of the log.
func (s *Site) logTail(d daemon) string {
	const lastLines, lastBytes = 4, 16 << 10
	f, err := os.Open(s.logPath(d))
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	begin := max(info.Size()-lastBytes, 0)
	b, err := io.ReadAll(io.NewSectionReader(f, begin, lastBytes))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if begin > 0 && len(lines) > 1 {
		lines = lines[1:] // the first line may have begun earlier
	}
	return ": " + strings.Join(lines[max(len(lines)-lastLines, 0):], "; ")
}
