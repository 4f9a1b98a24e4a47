package regions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/internal/scratch"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/sdk"
)

// ErrOptions says that Options ask for something that cannot be measured.
var ErrOptions = errors.New("cannot be measured")

// minRegions is the least number of regions: one that is switched, and one beside it.
const minRegions = 2

// Options select the measurement. The zero value measures a drive of seven regions in memory.
type Options struct {
	// Drive is mem: or file:PATH, with slm, threads, lba and commands if the URI says so. A drive in a file must not
	// exist; it is made, and removed in the end. Empty: mem:
	Drive   string
	Regions int // The drive has minRegions to cs.MaxRegions; 0 means cs.MaxRegions.
	// Models are workloads: rm1 to rm5, d1-1 to d1-3 and d2-1 to d2-3 (d1 and d2 are the first of each). The first is
	// that of all measurements but the mixed one. Empty: rm1 and d1.
	Models      []string
	Rows        int64         // 0 means some 40 MB of each workload's partition.
	Time        time.Duration // Each run takes this time; 0 means 10 s.
	Turns       int           // Jobs run beside a region that is switched and beside one that is not; 0 means 5 turns.
	Switches    int           // how many switches are timed; 0: 500
	HostIOShare int           // limit of ordinary commands in percent, for the runs that have one; 0: 20
	Seed        uint64        // It draws the data and all random places and moments.
	// Timing makes the regions take the time of a modelled drive under the images of their workloads, and only the rates
	// of jobs in regions are measured, on the model's clock. nil: native.
	Timing   *timing.Pacing
	Progress func(string) // each step in words; nil: none

	uri sdk.URI
}

// checkOptions replaces zeros by defaults and refuses what cannot be measured.
func (o *Options) checkOptions() error {
	o.setDefaults()
	var err error
	if o.uri, err = sdk.ParseURI(o.Drive); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	u := &o.uri
	if u.Scheme != "mem" && u.Scheme != "file" || u.Scheme == "mem" && u.Name != "" || u.Size != 0 || u.Diskless ||
		u.Regions != 0 || u.Region != 0 {
		return fmt.Errorf("%w: drive %q: want mem: or file:PATH of a drive that is made here, and of its properties slm, "+
			"threads, lba and commands", ErrOptions, o.Drive)
	}
	if o.Regions < minRegions || o.Regions > cs.MaxRegions {
		return fmt.Errorf("%w: %d regions: want %d to %d", ErrOptions, o.Regions, minRegions, cs.MaxRegions)
	}
	if o.Rows < 0 || o.Time < 0 || o.Turns < 1 || o.Switches < 1 {
		return fmt.Errorf("%w: %d rows, %v, %d turns, %d switches: want a turn and a switch at least, and nothing below 0",
			ErrOptions, o.Rows, o.Time, o.Turns, o.Switches)
	}
	if o.HostIOShare < controller.MinHostIOShare || o.HostIOShare >= controller.NoHostIOLimit {
		return fmt.Errorf("%w: a share of %d %% for ordinary commands: want %d to %d", ErrOptions, o.HostIOShare,
			controller.MinHostIOShare, controller.NoHostIOLimit-1)
	}
	if o.Timing != nil && o.Timing.Mode() != timing.ModeImage {
		return fmt.Errorf("%w: timing %s: want native or image; PreSto's designs have no regions", ErrOptions,
			o.Timing.Mode())
	}
	for i, name := range o.Models {
		if _, _, err := findWorkload(name); err != nil {
			return fmt.Errorf("%w: %w", ErrOptions, err)
		}
		if slices.Contains(o.Models[:i], name) {
			return fmt.Errorf("%w: model %s is named twice", ErrOptions, name)
		}
	}
	return nil
}

func (o *Options) setDefaults() {
	setDefault(&o.Drive, "mem:")
	setDefault(&o.Regions, cs.MaxRegions)
	setDefault(&o.Time, 10*time.Second)
	setDefault(&o.Turns, 5)
	setDefault(&o.Switches, 500)
	setDefault(&o.HostIOShare, 20)
	if len(o.Models) == 0 {
		o.Models = []string{"rm1", "d1"}
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

func setDefault[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// regionsBeside is the number of regions whose jobs run beside one that is switched: all threads together have a core
// each.
func (o *Options) regionsBeside() int { return min(o.Regions-1, max(1, usableProcessors()-1)) }

// usableProcessors is the number of processors that this process may use.
func usableProcessors() int { return max(1, int(processors.Available())) }

// Run measures the regions of a drive.
func Run(ctx context.Context, o Options) (r *Result, err error) {
	if err := o.checkOptions(); err != nil {
		return nil, fmt.Errorf("bench regions: %w", err)
	}
	temporary, err := scratch.Make("", "millrace-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, temporary.Close()) }()
	dir := temporary.Path
	works, err := generatePartitions(ctx, &o, dir)
	if err != nil {
		return nil, fmt.Errorf("bench regions: %w", err)
	}
	r = &Result{Drive: o.uri.Scheme, Regions: o.Regions, Threads: max(1, o.uri.Threads), Cores: usableProcessors()}
	throughput := measurement{"throughput", controller.NoHostIOLimit, r.measureThroughput}
	steps := []measurement{
		{"switch", controller.NoHostIOLimit, r.measureSwitches},
		{"beside switches", controller.NoHostIOLimit, r.measureBeside},
		throughput,
		{"host I/O", controller.NoHostIOLimit, r.measureHostIO},
		{"host I/O with a limit", o.HostIOShare, r.measureHostIO},
	}
	if o.Timing != nil {
		steps = []measurement{throughput}
	}
	for _, step := range steps {
		if err := withDrive(ctx, &o, works, step.share, step.measure); err != nil {
			return nil, fmt.Errorf("bench regions: %s: %w", step.name, err)
		}
	}
	if r.Notes = r.explanations(); o.Timing != nil {
		if err := o.Timing.Err(); err != nil {
			return nil, fmt.Errorf("bench regions: %w", err)
		}
		report := o.Timing.Report()
		r.Timing, r.Notes = &report, []string{report.String()}
	}
	return r, nil
}

// measurement is a part of a run, on a drive of its own.
type measurement struct {
	name    string
	share   int // share is that of ordinary commands.
	measure func(context.Context, *stage) error
}

// withDrive measures on a drive that is made for it.
func withDrive(ctx context.Context, o *Options, works []*work, share int,
	measure func(context.Context, *stage) error) (err error) {
	s, err := newStage(ctx, o, works, share)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.closeDrive()) }()
	return measure(ctx, s)
}
