package pipeline

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/bench/cluster"
	"github.com/millrace/millrace/internal/processors"
)

//go:embed consumer.py
var consumer string

// python is a process that takes mini-batches with the Python package; see consumer.py.
type python struct {
	kind string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs *lastLine
}

// lastLine keeps the last line that a process wrote.
type lastLine struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (l *lastLine) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const kept = 4096
	l.text = append(l.text, b...)
	l.text = l.text[max(0, len(l.text)-kept):]
	return len(b), nil
}

func (l *lastLine) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(l.text)), "\n")
	return lines[len(lines)-1]
}

// python is the route over the service to a process of Python. If this machine lacks something, why says what.
func (s *stage) python(ctx context.Context, kind string, t cluster.Transport) (_ *route, why string, err error) {
	var p *python
	for _, other := range s.pythons {
		if other.kind == kind {
			p = other
		}
	}
	if p == nil {
		if p, err = startPython(ctx, s.o.Python, kind); err != nil {
			return nil, err.Error(), context.Cause(ctx)
		}
		s.closers = append(s.closers, p.close)
		s.pythons = append(s.pythons, p)
	}
	c, err := s.clusterOf(ctx, t)
	if err != nil {
		return nil, "", err
	}
	r := &route{cluster: c, workers: 1, trainer: func() time.Duration { return processors.TimeOf(p.cmd.Process.Pid) }}
	run := func(ctx context.Context, epochs uint64, sums bool,
		take func(number uint64, b arrival, bytes int64) (bool, error)) (frames int64, err error) {
		status, err := c.Client.Submit(ctx, s.jobSpec(epochs))
		if err != nil {
			return 0, err
		}
		frames, err = p.job(ctx, order{c.Member.URL, status.Id, certificate(c), sums}, take)
		if epochs > 1 || err != nil {
			err = errors.Join(err, c.Client.Cancel(context.WithoutCancel(ctx), status.Id))
		}
		return frames, err
	}
	r.pass = func(ctx context.Context, a *account) (err error) {
		a.frameBytes, err = run(ctx, 1, true, func(number uint64, b arrival, _ int64) (bool, error) {
			return true, a.add(number, b)
		})
		return err
	}
	r.flow = func(ctx context.Context, more func(int, int64) bool) error {
		_, err := run(ctx, manyEpochs, false, func(_ uint64, b arrival, bytes int64) (bool, error) {
			return more(b.rows, bytes), nil
		})
		return err
	}
	return r, "", nil
}

// certificate returns a launcher's certificate, key and authority; nil in clear.
func certificate(c *cluster.Cluster) []string {
	if !c.Launcher.On() {
		return nil
	}
	return []string{c.Launcher.Cert, c.Launcher.Key, c.Launcher.CA}
}

// startPython starts a process.
func startPython(ctx context.Context, interpreter, kind string) (*python, error) {
	p := &python{kind: kind, cmd: exec.CommandContext(ctx, interpreter, "-c", consumer, kind), errs: &lastLine{}}
	p.cmd.Stderr = p.errs
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s cannot be run: %w", interpreter, err)
	}
	p.out = bufio.NewReader(out)
	if _, err := p.out.ReadBytes('\n'); err != nil {
		_ = p.close() // what the process printed says more than its status
		return nil, fmt.Errorf("%s with the Python package cannot be run: %s", interpreter, p.errs)
	}
	return p, nil
}

// order is a line that the process reads.
type order struct {
	Control string   `json:"control"`
	Job     string   `json:"job"`
	TLS     []string `json:"tls"`
	Sums    bool     `json:"sums"`
}

// job has the process take a job's mini-batches until take reports false. It returns the bytes of the frames that
// came.
func (p *python) job(ctx context.Context, o order,
	take func(number uint64, b arrival, bytes int64) (more bool, err error)) (frames int64, err error) {
	text, err := json.Marshal(o)
	if err != nil {
		return 0, err
	}
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		return 0, p.failed(ctx, err)
	}
	for more := true; ; {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			return 0, p.failed(ctx, err)
		}
		if rest, ok := bytes.CutPrefix(line, []byte("e ")); ok {
			_, err := fmt.Sscan(string(rest), &frames)
			return frames, err
		}
		if !more {
			continue // it was on its way
		}
		var (
			number uint64
			b      arrival
			n      int64
		)
		if _, err := fmt.Sscanf(string(line), "b %d %d %d %d\n", &number, &b.rows, &n, &b.sum); err != nil {
			return 0, fmt.Errorf("the process in Python prints %.80q: %w", line, err)
		}
		if more, err = take(number, b, n); err != nil {
			return 0, err
		}
		if !more {
			if _, err := p.in.Write([]byte("\n")); err != nil {
				return 0, p.failed(ctx, err)
			}
		}
	}
}

// failed is the error of a process that has ended.
func (p *python) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("the process in Python has ended: %w: %s", err, p.errs)
}

// close ends the process.
func (p *python) close() error {
	_ = p.in.Close()
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()         // it was killed
	return nil
}
