package offload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/offload"
)

// Options select the measurement. Command is required; the rest may be zero.
type Options struct {
	// Command runs millrace; the arguments of a subcommand are appended to it.
	Command []string
	// Env is added to the environment of Command.
	Env []string

	Cores         []float64     // shares of a step in which the trainer uses a CPU; empty: 0.3, 0.7, 1
	TrainerCores  float64       // quota of the trainer's machine; 0 means 1
	DriveCores    float64       // quota of the drive; 0 means 0.5
	RowsPerSecond float64       // of the trainer; 0 means 400,000
	Rows          int           // of the data, 0 means 400,000
	Steps         int           // shares of the sweep between 0 and 1; 0 means 4
	Timeout       time.Duration // of each process; 0 means 5 minutes
	Progress      func(string)  // receives a line of text for each step, if not nil
}

// Bounds of Options.
const (
	MaxSteps = 100
	MaxCores = 1024
)

// waitDelay bounds the wait for the rest of a killed command's output: a process that the command started may hold
// the output open.
const waitDelay = 5 * time.Second

// Measured holds the measurements for one trainer.
type Measured struct {
	TrainerCPU   float64   `json:"trainer_cpu"`   // share of the trainer's step in which it uses a CPU
	TrainerQuota float64   `json:"trainer_cores"` // 0: no quota was permitted
	DriveQuota   float64   `json:"drive_cores"`
	Sweep        []Point   `json:"sweep"`
	Best         Point     `json:"best"`
	Outcomes     []Outcome `json:"outcomes"`
	Note         string    `json:"note,omitempty"` // deviations from the options
}

// Point is one share of the sweep.
type Point struct {
	Ratio         float64 `json:"ratio"`
	RowsPerSecond float64 `json:"rows_per_second"`
}

func (o *Options) defaults() error {
	if len(o.Cores) == 0 {
		o.Cores = []float64{0.3, 0.7, 1}
	}
	set := func(v *float64, d float64) {
		if *v == 0 {
			*v = d
		}
	}
	set(&o.TrainerCores, 1)
	set(&o.DriveCores, 0.5)
	set(&o.RowsPerSecond, 400_000)
	if o.Rows == 0 {
		o.Rows = 400_000
	}
	if o.Steps == 0 {
		o.Steps = 4
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	for _, share := range o.Cores {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("%w: a trainer that uses %v of a CPU: want 0 to 1", ErrOptions, share)
		}
	}
	switch {
	case len(o.Command) == 0:
		return fmt.Errorf("%w: no command", ErrOptions)
	case !(o.TrainerCores >= 0.05 && o.TrainerCores <= MaxCores && o.DriveCores >= 0.05 && o.DriveCores <= MaxCores):
		return fmt.Errorf("%w: quotas of %v and %v cores: want 0.05 to %d", ErrOptions, o.TrainerCores, o.DriveCores,
			MaxCores)
	case !(o.RowsPerSecond > 0) || o.Rows < 1 || o.Steps < 1 || o.Steps > MaxSteps || o.Timeout < 0:
		return fmt.Errorf("%w: %v rows/s, %d rows, %d shares: want above 0, 1 to %d shares", ErrOptions,
			o.RowsPerSecond, o.Rows, o.Steps, MaxSteps)
	}
	return nil
}

// Run serves a drive from one process and trains in another, each under its quota of CPU, at every share of a sweep
// and under the policies. If quotas are not permitted, it runs without them and adds a note. The trainer is a
// stand-in.
func Run(ctx context.Context, o Options) (results []Measured, err error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "millrace-bench-offload")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := bench{Options: o, dir: dir}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	for _, share := range o.Cores {
		m, err := b.measure(ctx, share)
		if err != nil {
			return nil, err
		}
		results = append(results, m)
	}
	return results, nil
}

// bench is the state of Run: a drive that is served, and the groups of the two sides.
type bench struct {
	Options
	dir     string
	uri     string
	drive   *exec.Cmd
	trainer *quota // nil: not permitted
	worker  *quota
	note    string
}

// start makes data, groups and the drive.
func (b *bench) start(ctx context.Context) (err error) {
	b.Progress("making the data and the drive")
	data := filepath.Join(b.dir, "data")
	if _, err := b.run(ctx, nil, "dataset", "generate", "--model", "rm1", "--rows", strconv.Itoa(b.Rows),
		"--partitions", "4", "--out", data); err != nil {
		return err
	}
	flash := "file:" + filepath.Join(b.dir, "d0.flash")
	if _, err := b.run(ctx, nil, "drive", "create", fmt.Sprintf("%s?size=%dB", flash, flashBytes(b.Rows))); err != nil {
		return err
	}
	put := []string{"drive", "put", flash}
	files, err := filepath.Glob(filepath.Join(data, "*.parquet"))
	if err != nil {
		return err
	}
	if _, err := b.run(ctx, nil, append(put, files...)...); err != nil {
		return err
	}
	name := fmt.Sprintf("millrace-bench-%d", os.Getpid())
	if b.trainer, err = newQuota(name+"-trainer", b.TrainerCores); err == nil {
		b.worker, err = newQuota(name+"-drive", b.DriveCores)
	}
	if err != nil {
		b.note = fmt.Sprintf("quotas of CPU are not permitted here, so every process uses what it can: %v", err)
		b.Progress(b.note)
	}
	return b.serve(ctx, filepath.Join(b.dir, "d0.flash"))
}

// serve starts the drive and waits until it is ready.
func (b *bench) serve(ctx context.Context, flash string) error {
	args := append(b.Command[1:len(b.Command):len(b.Command)], "drive", "serve", "--flash", flash, "--slm", "256MiB",
		"--listen", "127.0.0.1:0", "--nqn", "nqn.2024-01.io.millrace:bench", "--output", "json", "--log-level", "error")
	b.drive = exec.CommandContext(ctx, b.Command[0], args...)
	b.drive.Env = append(os.Environ(), b.Env...)
	b.drive.WaitDelay = waitDelay
	out, err := b.drive.StdoutPipe()
	if err != nil {
		return err
	}
	var said bytes.Buffer
	b.drive.Stderr = &said
	if err := b.drive.Start(); err != nil {
		b.drive = nil
		return fmt.Errorf("drive serve: %w", err)
	}
	var ready struct {
		URI string `json:"uri"`
	}
	if err := json.NewDecoder(io.LimitReader(out, 1<<16)).Decode(&ready); err != nil || ready.URI == "" {
		err = errors.Join(err, b.stopDrive())
		return fmt.Errorf("drive serve: it ended before it was ready: %w: %s", err, strings.TrimSpace(said.String()))
	}
	b.uri = ready.URI
	if b.worker != nil {
		return b.worker.add(b.drive.Process.Pid)
	}
	return nil
}

// stopDrive ends the drive's process.
func (b *bench) stopDrive() error {
	if b.drive == nil {
		return nil
	}
	drive := b.drive
	b.drive = nil
	err := drive.Process.Signal(syscall.SIGTERM)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	var exit *exec.ExitError
	if waitErr := drive.Wait(); waitErr != nil && !errors.As(waitErr, &exit) {
		err = errors.Join(err, waitErr)
	}
	return err
}

// close ends the drive and removes the groups.
func (b *bench) close() error {
	err := b.stopDrive()
	for _, q := range []*quota{b.trainer, b.worker} {
		if q != nil {
			err = errors.Join(err, q.close())
		}
	}
	return err
}

// run runs a command to its end, in a group if group is not nil, and returns the command's output.
func (b *bench) run(ctx context.Context, group *quota, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.Timeout, fmt.Errorf("killed after %v: %w", b.Timeout,
		context.DeadlineExceeded))
	defer cancel()
	cmd := exec.CommandContext(ctx, b.Command[0], append(b.Command[1:len(b.Command):len(b.Command)], args...)...)
	cmd.Env = append(os.Environ(), b.Env...)
	cmd.WaitDelay = waitDelay
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	what := strings.Join(args[:2], " ")
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if group != nil {
		if err := group.add(cmd.Process.Pid); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: quota: %w", what, err), cmd.Process.Kill(), cmd.Wait())
		}
	}
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, fmt.Errorf("%s: %w: %s", what, err, strings.TrimSpace(said.String()))
	}
	return out.Bytes(), nil
}

// train runs a job and returns its report. offloading is a share or the name of a policy.
func (b *bench) train(ctx context.Context, cpuShare float64, offloading string) (*trainmgr.Report, error) {
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	b.Progress(fmt.Sprintf("a trainer that uses %g of a CPU, offloading %s", cpuShare, offloading))
	out, err := b.run(ctx, b.trainer, "train", "--pipeline", "rm1", "--batch", "4096", "--split-batches", "4",
		"--epochs", "3", "--drive", b.uri, "--local", filepath.Join(b.dir, "data"), "--offload", offloading,
		"--trainer-rows-per-second", number(b.RowsPerSecond), "--trainer-cpu", number(cpuShare), "--measure", "200ms",
		"--output", "json", "--progress", "none")
	if err != nil {
		return nil, err
	}
	var report trainmgr.Report
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, fmt.Errorf("report of train: %w", err)
	}
	if report.Offload == nil {
		return nil, errors.New("report of train: it does not say how splits were shared")
	}
	return &report, nil
}

// measure runs the sweep and the policies for one trainer.
func (b *bench) measure(ctx context.Context, cpuShare float64) (Measured, error) {
	m := Measured{TrainerCPU: cpuShare, Note: b.note}
	if b.note == "" {
		m.TrainerQuota, m.DriveQuota = b.TrainerCores, b.DriveCores
	}
	for i := range b.Steps + 1 {
		ratio := float64(i) / float64(b.Steps)
		r, err := b.train(ctx, cpuShare, strconv.FormatFloat(ratio, 'f', -1, 64))
		if err != nil {
			return m, err
		}
		p := Point{ratio, r.RowsPerSecond}
		m.Sweep = append(m.Sweep, p)
		if p.RowsPerSecond > m.Best.RowsPerSecond {
			m.Best = p
		}
	}
	for _, policy := range []offload.Policy{offload.Extended, offload.Paper} {
		r, err := b.train(ctx, cpuShare, policy.String())
		if err != nil {
			return m, err
		}
		m.Outcomes = append(m.Outcomes, Outcome{policy.String(), r.Offload.Decision, r.RowsPerSecond,
			1 - r.RowsPerSecond/m.Best.RowsPerSecond})
	}
	return m, nil
}

// flashBytes returns the size, in whole blocks, of a drive with ample room for rows of RM1.
func flashBytes(rows int) int { return (64<<20 + 600*rows) &^ 4095 }
