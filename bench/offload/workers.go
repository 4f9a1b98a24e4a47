package offload

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/offload"
)

// workers are the processes that preprocess beside the trainer at one cut:
//
//	transforms           a drive without flash, to which the trainer's process streams what it reads
//	read_and_transforms  a drive over NVMe/TCP, whose mini-batches the trainer's process gathers
//	all                  a storage node with the drive, and a control plane
type workers struct {
	cut       offload.Cut
	at        string // URI of the drive, or URL of the control plane
	processes []*server
}

// server is a process that runs until it is ended.
type server struct {
	what string
	cmd  *exec.Cmd
	said *bytes.Buffer // on standard error
}

// trained is the result of one job.
type trained struct {
	rowsPerSecond float64
	decision      offload.Decision // of the policy when the job began, or of the leader when the job ended
	metrics       *offload.Metrics // nil: not measured by the job
	ratio         float64          // when the job ended
	tunings       int
}

// outcome compares a job with the sweep's best.
func (t *trained) outcome(policy offload.Policy, best float64) JobOutcome {
	return JobOutcome{
		Outcome: Outcome{policy.String(), t.decision, t.rowsPerSecond, 1 - t.rowsPerSecond/best},
		Metrics: t.metrics, Ratio: t.ratio, Tunings: t.tunings,
	}
}

// startWorkers starts the processes of a cut.
func (b *bench) startWorkers(ctx context.Context, cut offload.Cut) (w *workers, err error) {
	w = &workers{cut: cut}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
			w = nil
		}
	}()
	const nqn = "nqn.2024-01.io.millrace:bench"
	var ready struct {
		URI, URL string
		URLs     []string
	}
	serve := func(group *quota, args ...string) error {
		s, err := b.serve(ctx, group, &ready, args...)
		if s != nil {
			w.processes = append(w.processes, s)
		}
		return err
	}
	switch cut {
	case offload.Transforms:
		err = serve(b.worker, "drive", "serve", "--diskless", "--slm", "256MiB", "--listen", "127.0.0.1:0", "--nqn",
			nqn, "--output", "json", "--log-level", "error")
		w.at = ready.URI
	case offload.ReadAndTransforms:
		err = serve(b.worker, "drive", "serve", "--flash", b.flash(), "--slm", "256MiB", "--listen", "127.0.0.1:0",
			"--nqn", nqn, "--output", "json", "--log-level", "error")
		w.at = ready.URI
	default:
		if err = serve(nil, "control", "run", "--listen", "127.0.0.1:0", "--data", b.folder("control"), "--output",
			"json", "--log-level", "error"); err != nil {
			return w, err
		}
		w.at = ready.URL
		config, err := json.Marshal(map[string]any{ // YAML contains JSON
			"name": "n0", "listen": []string{"127.0.0.1:0"}, "control": []string{w.at}, "state_dir": b.folder("node"),
			"drives": []any{map[string]string{"name": "d0", "uri": "file:" + b.flash() + "?slm=256MiB"}},
			"log":    map[string]string{"level": "error"},
		})
		if err == nil {
			err = os.WriteFile(b.folder("node.yaml"), config, 0o600)
		}
		if err == nil {
			// The rank's own worker serves on a socket, so that a limit of the network holds for the other workers
			// alone.
			err = os.WriteFile(b.folder("own.yaml"),
				[]byte("threads: 1\nlisten: [\"unix:"+b.folder("own.sock")+"\"]\n"), 0o600)
		}
		if err != nil {
			return w, err
		}
		if err = serve(b.worker, "node", "run", "--config", b.folder("node.yaml"), "--output", "json"); err != nil {
			return w, err
		}
	}
	return w, err
}

// folder returns a path in the measurement's folder.
func (b *bench) folder(name string) string { return filepath.Join(b.dir, name) }

// serve starts a process and waits until it writes on standard output that it is ready. The server is not nil if a
// process was started.
func (b *bench) serve(ctx context.Context, group *quota, ready any, args ...string) (*server, error) {
	s := &server{what: strings.Join(args[:2], " "), said: &bytes.Buffer{}}
	s.cmd = exec.CommandContext(ctx, b.Command[0], slices.Concat(b.Command[1:], args)...)
	s.cmd.Env, s.cmd.WaitDelay, s.cmd.Stderr = append(os.Environ(), b.Env...), waitDelay, s.said
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.what, err)
	}
	if group != nil {
		if err := group.add(s.cmd.Process.Pid); err != nil {
			return s, fmt.Errorf("%s: quota: %w", s.what, err)
		}
	}
	if err := json.NewDecoder(io.LimitReader(out, 1<<16)).Decode(ready); err != nil {
		return s, fmt.Errorf("%s: it ended before it was ready: %w", s.what, err)
	}
	return s, nil
}

// close ends the processes, the last one first, and adds what a process that failed has written.
func (w *workers) close() error {
	var errs []error
	for _, s := range slices.Backward(w.processes) {
		if err := s.stop(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w: %s", s.what, err, strings.TrimSpace(s.said.String())))
		}
	}
	w.processes = nil
	return errors.Join(errs...)
}

// stop ends the process. A process that had ended with an error is one of the errors.
func (s *server) stop() error {
	err := s.cmd.Process.Signal(syscall.SIGTERM)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	return errors.Join(err, s.cmd.Wait())
}

// The jobs that train. A rank of a control plane's job has a profile if an epoch has at least 200 mini-batches, and the
// job 5,000 (docs/offload.md).
const (
	trainBatch      = 1024 // rows
	splitBatches    = 16
	measuredEpochs  = 3
	profiledBatches = 5200 // of a rank under a control plane
	profiledEpoch   = 200  // mini-batches
)

// profile trains once, so that the profile of this trainer, cut and link is kept and later jobs measure nothing.
func (b *bench) profile(ctx context.Context, w *workers, cpuShare float64) error {
	epochs := measuredEpochs
	if w.cut == offload.All {
		if b.Rows/trainBatch < profiledEpoch {
			b.deviate(fmt.Sprintf("too few rows for a profile under a control plane, whose policies decide from T and "+
				"P: %d", b.Rows))
			return nil
		}
		epochs = max(epochs, (profiledBatches*trainBatch+b.Rows-1)/b.Rows)
	}
	_, err := b.train(ctx, w, cpuShare, offload.Extended.String(), epochs)
	return err
}

// trainLong runs a job of the policy Extended that lasts for JobTime, about, if it makes a number of rows a second. Its
// rate is that of the last third, when the tuner has had time to search. A control plane keeps no log of its decisions
// for a launcher, so the rate of its job is that of the whole job.
func (b *bench) trainLong(ctx context.Context, w *workers, cpuShare, rowsPerSecond float64) (trained, error) {
	epochs := max(measuredEpochs, int(math.Ceil(b.JobTime.Seconds()*rowsPerSecond/float64(b.Rows))))
	if w.cut == offload.All {
		return b.train(ctx, w, cpuShare, offload.Extended.String(), epochs)
	}
	log := b.folder("decisions.json")
	t, err := b.train(ctx, w, cpuShare, offload.Extended.String(), epochs, "--offload-log", log)
	if err != nil {
		return t, err
	}
	if late, ok, err := lateRate(log); err != nil || ok {
		t.rowsPerSecond = late
		return t, err
	}
	return t, nil // the job ended before its tuner had decided twice
}

// lateRate returns the rows a second in the last third of the time between the first and the last of a log's decisions.
// ok is false if no time lies between them.
func lateRate(path string) (rowsPerSecond float64, ok bool, err error) {
	log, err := os.ReadFile(path)
	if err != nil {
		return 0, false, fmt.Errorf("log of decisions: %w", err)
	}
	var inputs []offload.Inputs
	for line := range bytes.Lines(log) {
		var r offload.Record
		if err := json.Unmarshal(line, &r); err != nil {
			return 0, false, fmt.Errorf("log of decisions: %w", err)
		}
		inputs = append(inputs, r.Inputs)
	}
	if len(inputs) < 2 {
		return 0, false, nil
	}
	last := inputs[len(inputs)-1]
	begin := last.Seconds - (last.Seconds-inputs[0].Seconds)/3
	from := inputs[0]
	for _, in := range inputs[:len(inputs)-1] {
		if in.Seconds <= begin {
			from = in
		}
	}
	if last.Seconds <= from.Seconds {
		return 0, false, nil
	}
	rows := last.TakenRows - from.TakenRows
	return rows / (last.Seconds - from.Seconds), true, nil
}

// rateAfterFirst returns the rows a second of a job without the wait for its first mini-batch. Jobs of the sweep are
// shorter than a job of Extended, and attaching to a control plane takes each of them the same time.
func rateAfterFirst(r *trainmgr.Report) float64 {
	if trained := r.ElapsedSeconds - r.FirstWaitSeconds; trained > 0 {
		return float64(r.Rows) / trained
	}
	return r.RowsPerSecond
}

// train runs a job. offloading is a share or the name of a policy; more is added to the command's arguments.
func (b *bench) train(ctx context.Context, w *workers, cpuShare float64, offloading string,
	epochs int, more ...string,
) (trained, error) {
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	b.Progress(fmt.Sprintf("cut %v, a trainer that uses %g of a CPU, offloading %s, %d epochs", w.cut, cpuShare,
		offloading, epochs))
	args := []string{"train", "--pipeline", "rm1", "--batch", strconv.Itoa(trainBatch), "--split-batches",
		strconv.Itoa(splitBatches), "--epochs", strconv.Itoa(epochs), "--local", b.data(), "--offload", offloading,
		"--trainer-rows-per-second", number(b.RowsPerSecond), "--trainer-cpu", number(cpuShare), "--measure",
		b.Measure.String(), "--output", "json", "--progress", "none"}
	if _, err := strconv.ParseFloat(offloading, 64); err != nil {
		model := fmt.Sprintf("cpu-%s-link-%s", number(cpuShare), number(b.bandwidth))
		args = append(args, "--offload-model", model, "--offload-metrics", b.folder("profiles.json"))
	}
	switch w.cut {
	case offload.Transforms:
		args = append(args, "--in", b.data(), "--accelerator", w.at)
	case offload.ReadAndTransforms:
		args = append(args, "--drive", w.at)
	default:
		args = append(args, "--control", w.at, "--own-worker", b.folder("own.yaml"))
	}
	out, err := b.run(ctx, b.trainer, append(args, more...)...)
	if err != nil {
		return trained{}, err
	}
	var report struct {
		trainmgr.Report
		SplitShares *struct { // of a rank of a control plane's job
			Share float64 `json:"other_workers_share"`
			Why   string  `json:"offload"`
		} `json:"split_shares"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return trained{}, fmt.Errorf("report of train: %w", err)
	}
	result := trained{rowsPerSecond: rateAfterFirst(&report.Report)}
	switch shared := report.SplitShares; {
	case report.Offload != nil:
		result.decision, result.metrics = report.Offload.Decision, report.Offload.Metrics
		result.ratio, result.tunings = report.Offload.Ratio, report.Offload.Retunings
	case shared != nil:
		share := max(shared.Share, 0)
		result.decision = offload.Decision{Offload: share > 0, Cut: w.cut, Ratio: share,
			Why: cmp.Or(shared.Why, "the job ended before the control plane decided")}
		result.ratio = share
	default:
		return trained{}, errors.New("report of train: it does not say how splits were shared")
	}
	return result, nil
}
