package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/bench/cluster"
	"github.com/millrace/millrace/bench/rm"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/scratch"
	"github.com/millrace/millrace/sdk"
)

// Errors of Run.
var (
	ErrOptions = errors.New("cannot be measured")
	ErrDiffers = errors.New("the mini-batches are not those of the data")
)

// Way is a way of mini-batches, or a bound of one.
type Way string

// The ways.
const (
	CPU          Way = "cpu"
	Drive        Way = "drive"
	Trainer      Way = "trainer"
	LauncherUnix Way = "launcher-unix"
	LauncherTCP  Way = "launcher-tcp"
	LauncherTLS  Way = "launcher-tls"
	NumPyUnix    Way = "numpy-unix"
	NumPyTCP     Way = "numpy-tcp"
	NumPyTLS     Way = "numpy-tls"
	TorchUnix    Way = "torch-unix"
	TorchTCP     Way = "torch-tcp"
	RawUnix      Way = "raw-unix"
	RawTCP       Way = "raw-tcp"
)

// Ways returns all ways, in the order of the table.
func Ways() []Way {
	return []Way{
		CPU, Drive, Trainer, LauncherUnix, LauncherTCP, LauncherTLS, NumPyUnix, NumPyTCP, NumPyTLS, TorchUnix, TorchTCP,
		RawUnix, RawTCP,
	}
}

// Options select the measurement. Command is required; the rest may be zero.
type Options struct {
	Command []string // runs millrace; the arguments of a subcommand are appended to it
	Env     []string // is added to its environment

	Models []string // rm1 to rm5, rm1-real; empty: rm1 and rm5
	Criteo string   // file of Criteo's rows as text, for rm1-real
	Ways   []Way    // empty: all
	// Python is the interpreter of an environment with the Python package; empty: python3. Ways that it lacks something
	// for are left out.
	Python     string
	Rows       int64         // 0 means about 500 MB of data.
	Partitions int           // files of the data; 0: 4
	Threads    int           // engine threads; 0: 1
	Time       time.Duration // Each way takes this time at least, in all rounds together; 0 means 3 s.
	Rounds     int           // turns of each way; 0: 3
	Codec      string        // The files have this codec; empty means none.
	Encoding   string        // The files have this encoding; empty means plain.
	Coverage   float64       // share of rows that have a feature; 0: 1
	Seed       uint64
	Progress   func(string) // each step in words; nil: none
}

// Bounds of Options.
const (
	MaxRounds     = 100
	MaxRows       = 1 << 32
	MaxPartitions = 1024
)

// Result is one line of the table.
type Result struct {
	Model         string  `json:"model"`
	Way           Way     `json:"way"`
	Threads       int     `json:"threads"`
	Rounds        int     `json:"rounds"`
	RowsPerSecond float64 `json:"rows_per_second"`
	// BytesPerSecond counts bytes of tensors; of raw connections, bytes of blocks.
	BytesPerSecond float64 `json:"bytes_per_second"`
	// RoundSpread is half the difference of the fastest and the slowest round's rates, as a share of RowsPerSecond.
	RoundSpread float64 `json:"round_spread_share"`
	Settled     bool    `json:"settled"` // every round's rate was known well enough when the round ended
	// DriveShare is RowsPerSecond as a share of the drive's alone; 0 if that was not measured.
	DriveShare float64 `json:"drive_share"`
	// CPU seconds for a million rows, by process; 0 where there is no such process or the system does not tell.
	TrainerCPU float64 `json:"trainer_cpu_seconds_per_million_rows"`
	NodeCPU    float64 `json:"node_cpu_seconds_per_million_rows"`
	ControlCPU float64 `json:"control_cpu_seconds_per_million_rows"`

	// What was delivered when every mini-batch was delivered once; 0 for raw connections.
	Rows        int64  `json:"rows"`
	MiniBatches int64  `json:"mini_batches"`
	FrameBytes  int64  `json:"frame_bytes"` // FrameBytes counts frames that came over a socket.
	SentBytes   int64  `json:"sent_bytes"`  // SentBytes is what the nodes counted.
	Digest      string `json:"mini_batches_sha256"`
}

// Report is all that was measured.
type Report struct {
	Results []Result `json:"results"`
	LeftOut []string `json:"left_out"` // the ways that were not measured, and why
}

// withDefaults replaces zeroes by their defaults, and refuses impossible options.
func (o Options) withDefaults() (Options, error) {
	if len(o.Models) == 0 {
		o.Models = []string{"rm1", "rm5"}
	}
	if len(o.Ways) == 0 {
		o.Ways = Ways()
	}
	for _, w := range o.Ways {
		if !slices.Contains(Ways(), w) {
			return o, fmt.Errorf("%w: way %q: want one of %v", ErrOptions, w, Ways())
		}
	}
	for _, name := range o.Models {
		if err := o.checkModel(name); err != nil {
			return o, err
		}
	}
	for _, d := range []struct {
		value     *int
		otherwise int
	}{{&o.Partitions, 4}, {&o.Threads, 1}, {&o.Rounds, 3}} {
		if *d.value == 0 {
			*d.value = d.otherwise
		}
	}
	if o.Time == 0 {
		o.Time = 3 * time.Second
	}
	if o.Coverage == 0 {
		o.Coverage = 1
	}
	if o.Python == "" {
		o.Python = "python3"
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	switch {
	case len(o.Command) == 0:
		return o, fmt.Errorf("%w: no command that runs a control plane", ErrOptions)
	case o.Partitions < 1 || o.Partitions > MaxPartitions || o.Rows < 0 || o.Rows > MaxRows ||
		o.Rows > 0 && o.Rows < int64(o.Partitions):
		return o, fmt.Errorf("%w: %s in %s: want 1 to %d files, at least a row in each, at most %d rows", ErrOptions,
			quantity.Of(o.Rows, "row"), quantity.Of(o.Partitions, "file"), MaxPartitions, int64(MaxRows))
	case o.Threads < 1 || o.Threads > sdk.MaxThreads || o.Rounds < 1 || o.Rounds > MaxRounds || o.Time < 0:
		return o, fmt.Errorf("%w: %d threads, %d rounds, %v: want 1 to %d threads, 1 to %d rounds, a time above 0",
			ErrOptions, o.Threads, o.Rounds, o.Time, sdk.MaxThreads, MaxRounds)
	}
	return o, nil
}

// checkModel refuses a workload that is none, or lacks its rows.
func (o *Options) checkModel(name string) error {
	if name == rm.RealRM1 {
		if o.Criteo == "" {
			return fmt.Errorf("%w: workload %s takes its rows from a file of Criteo's text: name it with --criteo",
				ErrOptions, name)
		}
		return nil
	}
	if m, err := workload.Find(name); err != nil || m.Text {
		return fmt.Errorf("%w: workload %q: want rm1 to rm5 or %s", ErrOptions, name, rm.RealRM1)
	}
	return nil
}

// program is how processes are started.
func (o *Options) program() cluster.Program { return cluster.Program{Command: o.Command, Env: o.Env} }

// Run measures every workload in turn.
func Run(ctx context.Context, o Options) (*Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	report := &Report{Results: []Result{}, LeftOut: []string{}}
	for _, name := range o.Models {
		if err := o.model(ctx, name, report); err != nil {
			return report, fmt.Errorf("pipeline %s: %w", name, err)
		}
	}
	slices.Sort(report.LeftOut)
	report.LeftOut = slices.Compact(report.LeftOut)
	return report, nil
}

// model measures one workload.
func (o *Options) model(ctx context.Context, name string, report *Report) (err error) {
	temporary, err := scratch.Make("", "millrace-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temporary.Close()) }()
	dir := temporary.Path
	s := &stage{o: o, model: name, dir: dir, clusters: map[cluster.Transport]*cluster.Cluster{}}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.generate(ctx); err != nil {
		return err
	}
	for _, w := range o.Ways {
		why, err := s.add(ctx, w)
		if err != nil {
			return fmt.Errorf("%s: %w", w, err)
		}
		if why != "" {
			report.LeftOut = append(report.LeftOut, fmt.Sprintf("%s: %s", w, why))
		}
	}
	results, err := s.measure(ctx)
	report.Results = append(report.Results, results...)
	return err
}
