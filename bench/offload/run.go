package offload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/scratch"
	"github.com/millrace/millrace/trainmgr/offload"
)

// Options select the measurement. Command is required; the rest may be zero.
type Options struct {
	// Command runs millrace; the arguments of a subcommand are appended to it.
	Command []string
	// Env is added to the environment of Command.
	Env []string

	Cuts          []offload.Cut // empty: all three
	Bandwidths    []float64     // bytes a second of the link between trainer and workers; 0: no limit; empty: no limit
	Cores         []float64     // shares of a step in which the trainer uses a CPU; empty: 0.3, 0.7, 1
	TrainerCores  float64       // quota of the trainer's machine; 0 means 1
	DriveCores    float64       // quota of the drive; 0 means 0.5
	RowsPerSecond float64       // The trainer takes this rate; 0 means 400,000.
	Rows          int           // 0 means 400,000.
	Steps         int           // shares of the sweep between 0 and 1; 0 means 4
	Turns         int           // how often each share and each policy trains, in turns; 0 means 3
	// JobTime is how long the job of the policy Extended trains at least: its tuner changes the share while the job runs.
	// 0 means 2 minutes.
	JobTime  time.Duration
	Measure  time.Duration // how long a job measures each rate before it begins; 0 means 200 ms
	Timeout  time.Duration // Each process ends after this time; 0 means 5 minutes, or as long as JobTime wants.
	Progress func(string)  // receives a line of text for each step, if not nil
}

// Bounds of Options.
const (
	MaxSteps = 100
	MaxTurns = 100
	MaxCores = 1024

	MaxJobTime = time.Hour

	MinBandwidth = 100_000
	MaxBandwidth = 100_000_000_000
)

// errNoNetwork says that this process cannot have a network of limited bandwidth, and why.
var errNoNetwork = errors.New("no network namespace")

// waitDelay bounds the wait for the rest of a killed command's output: a process that the command started may hold
// the output open.
const waitDelay = 5 * time.Second

// Measured holds the measurements for one trainer at one cut and one bandwidth.
type Measured struct {
	Cut          offload.Cut  `json:"cut"`
	Bandwidth    float64      `json:"link_bytes_per_second"` // 0: no limit, or none was permitted
	TrainerCPU   float64      `json:"trainer_cpu"`           // share of the trainer's step in which it uses a CPU
	TrainerQuota float64      `json:"trainer_cores"`         // 0: no quota was permitted
	DriveQuota   float64      `json:"drive_cores"`
	Sweep        []Point      `json:"sweep"`
	Best         Point        `json:"best"`
	Outcomes     []JobOutcome `json:"outcomes"`
	// BestOfCuts is the distance of this cut's best from the best of all cuts for the same trainer and bandwidth.
	BestOfCuts float64 `json:"best_of_cuts_distance_share"`
	Note       string  `json:"note,omitempty"` // deviations from the options
}

// JobOutcome is what a policy came to. Of Extended it is one long job, whose rate is that of its last third, or of the
// whole job under a control plane; of other policies it is the median of the turns. Rates of whole jobs leave out the
// wait for the first mini-batch.
type JobOutcome struct {
	Outcome
	Metrics *offload.Metrics `json:"metrics,omitempty"` // what the profile measured; nil: the control plane decided
	// Ratio is the share in force when the job ended, and Tunings how often the tuner had changed it.
	Ratio   float64 `json:"ratio_at_end"`
	Tunings int     `json:"tunings"`
}

// Point is one share of the sweep. RowsPerSecond is the median of the turns.
type Point struct {
	Ratio         float64 `json:"ratio"`
	RowsPerSecond float64 `json:"rows_per_second"`
	Slowest       float64 `json:"slowest_rows_per_second"`
	Fastest       float64 `json:"fastest_rows_per_second"`
}

func (o *Options) defaults() error {
	if len(o.Cuts) == 0 {
		o.Cuts = []offload.Cut{offload.Transforms, offload.ReadAndTransforms, offload.All}
	}
	if len(o.Bandwidths) == 0 {
		o.Bandwidths = []float64{0}
	}
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
	if o.Turns == 0 {
		o.Turns = 3
	}
	if o.JobTime == 0 {
		o.JobTime = 2 * time.Minute
	}
	if o.Measure == 0 {
		o.Measure = 200 * time.Millisecond
	}
	if o.Timeout == 0 {
		o.Timeout = max(5*time.Minute, 4*o.JobTime)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	for _, cut := range o.Cuts {
		if cut < offload.Transforms || cut > offload.All {
			return fmt.Errorf("%w: %v offloads nothing", ErrOptions, cut)
		}
	}
	for _, b := range o.Bandwidths {
		if b != 0 && !(b >= MinBandwidth && b <= MaxBandwidth) {
			return fmt.Errorf("%w: a link of %v bytes/s: want %d to %d, or 0 for no limit", ErrOptions, b, MinBandwidth,
				int64(MaxBandwidth))
		}
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
	case o.JobTime < 0 || o.JobTime > MaxJobTime:
		return fmt.Errorf("%w: jobs of %v: want 1 ns to %v", ErrOptions, o.JobTime, MaxJobTime)
	case o.Measure < 0:
		return fmt.Errorf("%w: rates that are measured for %v: want 1 ns or more", ErrOptions, o.Measure)
	case o.Turns < 1 || o.Turns > MaxTurns:
		return fmt.Errorf("%w: %d turns: want 1 to %d", ErrOptions, o.Turns, MaxTurns)
	}
	return nil
}

// Run serves a worker from processes of their own and trains in another process, each side under its quota of CPU: for
// every cut, bandwidth and trainer at every share of a sweep and under the policies. The trainer is a stand-in. A limit
// of the bandwidth wants a network namespace. If quotas or namespaces are not permitted, Run goes on without them and
// adds a note. With an error of a job, or of ctx, Run also returns what it had measured of the trainers before.
func Run(ctx context.Context, o Options) (results []Measured, err error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	temporary, err := scratch.Make("", "millrace-bench-offload-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, temporary.Close()) }()
	dir := temporary.Path
	b := bench{Options: o, dir: dir}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	for _, bandwidth := range o.Bandwidths {
		measured, err := b.measureLink(ctx, bandwidth)
		compareCuts(measured)
		results = append(results, measured...)
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// compareCuts fills in the distance of each cut's best from the best of all cuts for the same trainer.
func compareCuts(measured []Measured) {
	best := map[float64]float64{}
	for _, m := range measured {
		best[m.TrainerCPU] = max(best[m.TrainerCPU], m.Best.RowsPerSecond)
	}
	for i := range measured {
		m := &measured[i]
		m.BestOfCuts = 1 - m.Best.RowsPerSecond/best[m.TrainerCPU]
	}
}

// bench is the state of Run: the data, the processes of the workers, and the groups of the two sides.
type bench struct {
	Options
	dir       string
	bandwidth float64 // in force now; 0: no limit
	trainer   *quota  // nil: not permitted
	worker    *quota
	notes     []string // deviations from the options
}

// start makes the data, the drive and the groups.
func (b *bench) start(ctx context.Context) (err error) {
	b.Progress("making the data and the drive")
	if _, err := b.run(ctx, nil, "dataset", "generate", "--model", "rm1", "--rows", strconv.Itoa(b.Rows),
		"--partitions", "4", "--out", b.data()); err != nil {
		return err
	}
	flash := "file:" + b.flash()
	if _, err := b.run(ctx, nil, "drive", "create", fmt.Sprintf("%s?size=%dB", flash, flashBytes(b.Rows))); err != nil {
		return err
	}
	put := []string{"drive", "put", flash}
	files, err := filepath.Glob(filepath.Join(b.data(), "*.parquet"))
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
		err = errors.Join(err, b.close())
		b.trainer, b.worker = nil, nil
		b.deviate(fmt.Sprintf("quotas of CPU are not permitted here, so every process uses what it can: %v", err))
	}
	return nil
}

// deviate notes a deviation from the options, once.
func (b *bench) deviate(note string) {
	if !slices.Contains(b.notes, note) {
		b.notes = append(b.notes, note)
		b.Progress(note)
	}
}

func (b *bench) data() string { return filepath.Join(b.dir, "data") }

func (b *bench) flash() string { return filepath.Join(b.dir, "d0.flash") }

// close removes the groups.
func (b *bench) close() error {
	var err error
	for _, q := range []*quota{b.trainer, b.worker} {
		if q != nil {
			err = errors.Join(err, q.close())
		}
	}
	return err
}

// measureLink measures every cut and every trainer over a link of a bandwidth.
func (b *bench) measureLink(ctx context.Context, bandwidth float64) (results []Measured, err error) {
	measure := func() error {
		for _, cut := range b.Cuts {
			measured, err := b.measureCut(ctx, cut)
			results = append(results, measured...)
			if err != nil {
				return fmt.Errorf("cut %v: %w", cut, err)
			}
		}
		return nil
	}
	if b.bandwidth = 0; bandwidth == 0 {
		err := measure()
		return results, err
	}
	err = inLimitedNetwork(ctx, bandwidth, func() error {
		b.bandwidth = bandwidth
		return measure()
	})
	if errors.Is(err, errNoNetwork) {
		b.deviate(fmt.Sprintf("a link of limited bandwidth is not permitted here, so none is measured: %v", err))
		return nil, nil
	}
	return results, err
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

// measureCut starts the workers of a cut, and runs the sweep and the policies for every trainer.
func (b *bench) measureCut(ctx context.Context, cut offload.Cut) (results []Measured, err error) {
	w, err := b.startWorkers(ctx, cut)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	for _, share := range b.Cores {
		m, err := b.measure(ctx, w, share)
		if err != nil {
			return results, err
		}
		results = append(results, m)
	}
	return results, nil
}

// measure runs the sweep and the policies for one trainer. A profile comes first and is kept, so that no policy's job
// measures one: in a job of seconds the profile would be most of what is measured.
func (b *bench) measure(ctx context.Context, w *workers, cpuShare float64) (Measured, error) {
	m := Measured{Cut: w.cut, Bandwidth: b.bandwidth, TrainerCPU: cpuShare, Note: strings.Join(b.notes, "; ")}
	if b.trainer != nil {
		m.TrainerQuota, m.DriveQuota = b.TrainerCores, b.DriveCores
	}
	if err := b.profile(ctx, w, cpuShare); err != nil {
		return m, err
	}
	sweep := make([]rates, b.Steps+1)
	var extended, paper trained
	var paperRates rates
	for turn := range b.Turns {
		for i := range sweep {
			share := strconv.FormatFloat(b.ratio(i), 'f', -1, 64)
			trained, err := b.train(ctx, w, cpuShare, share, measuredEpochs)
			if err != nil {
				return m, err
			}
			sweep[i] = append(sweep[i], trained.rowsPerSecond)
		}
		var err error
		if paper, err = b.train(ctx, w, cpuShare, offload.Paper.String(), measuredEpochs); err != nil {
			return m, err
		}
		paperRates = append(paperRates, paper.rowsPerSecond)
		if turn == b.Turns/2 { // in the middle, so that a machine that becomes slower or faster favours neither
			if extended, err = b.trainLong(ctx, w, cpuShare, slices.Max(paperRates)); err != nil {
				return m, err
			}
		}
	}
	for i, rates := range sweep {
		p := Point{b.ratio(i), rates.median(), slices.Min(rates), slices.Max(rates)}
		m.Sweep = append(m.Sweep, p)
		if p.RowsPerSecond > m.Best.RowsPerSecond {
			m.Best = p
		}
	}
	paper.rowsPerSecond = paperRates.median()
	m.Outcomes = []JobOutcome{
		extended.outcome(offload.Extended, m.Best.RowsPerSecond), paper.outcome(offload.Paper, m.Best.RowsPerSecond),
	}
	return m, nil
}

// ratio returns share i of the sweep.
func (b *bench) ratio(i int) float64 { return float64(i) / float64(b.Steps) }

// rates are the rows a second of the turns.
type rates []float64

// median returns the middle rate, or the mean of the two in the middle.
func (r rates) median() float64 {
	sorted := slices.Sorted(slices.Values(r))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// flashBytes returns the size, in whole blocks, of a drive with ample room for rows of RM1.
func flashBytes(rows int) int { return (64<<20 + 600*rows) &^ 4095 }
