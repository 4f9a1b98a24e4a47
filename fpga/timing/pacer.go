package timing

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/internal/clock"
)

// Pacing is the modelled time of the drives of a process, which share its clock. It is safe for concurrent use.
type Pacing struct {
	mode  Mode
	clock *clock.Clock

	mu     sync.Mutex // guards what follows, and the fields of the pacers
	pacers []*Pacer
	failed error
}

// NewPacing returns the timing of a mode, in which modelled times are dilate times as long. The mode is not ModeNative.
func NewPacing(m Mode, dilate int) *Pacing { return &Pacing{mode: m, clock: clock.New(dilate)} }

// Clock returns the clock on which the drives take the modelled time. Rates that are measured on it are those of the
// model.
func (p *Pacing) Clock() *clock.Clock { return p.clock }

// Pacer makes the executions of one drive end no earlier than the model says. NewPacer makes one.
type Pacer struct {
	pacing  *Pacing
	threads int

	free    [stageCount]time.Time     // when each stage has done its work so far; without overlap the first is the drive's
	spent   [stageCount]time.Duration // of the model, by stage
	model   time.Duration             // of the model, all work
	host    time.Duration             // that the host's threads took for it, on the same clock
	behind  time.Duration             // that the host has taken more than the model of late; not below 0
	highest time.Duration             // of the model, one slice
}

// NewPacer returns the pacer of a drive with engine threads.
func (p *Pacing) NewPacer(threads int) *Pacer {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &Pacer{pacing: p, threads: max(threads, 1)}
	p.pacers = append(p.pacers, r)
	return r
}

// Execution is one execution of a drive.
type Execution struct {
	Image *image.Image  // that is active
	Work  Work          // that it did
	Text  bool          // of a text source, which the model does not know
	Came  time.Time     // of the drive's clock: when its command came
	Host  time.Duration // of the machine: what moving and executing took, without waits
}

// tolerance is how long the host may be behind the model before it is an error, in time of the machine. A pause of the
// scheduler or of a disk takes less.
const tolerance = time.Second

// tolerantSlices is how many slices the host may be behind the model: of long ones, a few may be late.
const tolerantSlices = 4

// Take counts an execution, and returns how long the model says that it takes, and when it ends at the earliest. It
// fails if the model does not know the work, and if the host has been slower than the model for too long; after an
// error it always fails.
//
// With double buffers, each stage begins when the command has come and the stage has done its earlier work, and the
// execution ends when all stages have ended: the drive is as fast as its slowest stage, once it has two commands at a
// time. Without, an execution begins when the one before it has ended.
func (r *Pacer) Take(x Execution) (takes time.Duration, end time.Time, err error) {
	p := r.pacing
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		takes, end, p.failed = r.take(x)
	}
	return takes, end, p.failed
}

// take is Take. p.mu is held.
func (r *Pacer) take(x Execution) (takes time.Duration, end time.Time, err error) {
	d, err := r.pacing.mode.device(x.Image)
	if err != nil {
		return 0, end, err
	}
	if x.Text {
		return 0, end, fmt.Errorf("timing: the model of drives has no stage for unit %s: use Parquet files, or timing "+
			"native", program.UnitText)
	}
	if err := d.CheckWork(x.Work); err != nil {
		return 0, end, err
	}
	t := d.Times(x.Work)
	if takes = seconds(t.Period(false)); takes == 0 {
		return 0, x.Came, nil
	}
	r.model += takes
	r.highest = max(r.highest, takes)
	end = x.Came
	for i, s := range t.stages() {
		if s.output {
			continue
		}
		took := seconds(s.seconds)
		r.spent[i] += took
		if !d.Overlap {
			continue
		}
		r.free[i] = latest(r.free[i], x.Came).Add(took)
		end = latest(end, r.free[i])
	}
	if !d.Overlap {
		r.free[0] = latest(r.free[0], x.Came).Add(takes)
		end = r.free[0]
	}
	host := x.Host / time.Duration(r.threads*r.pacing.clock.Factor())
	r.host += host
	r.behind = max(0, r.behind+host-takes)
	if r.behind > max(tolerance/time.Duration(r.pacing.clock.Factor()), tolerantSlices*r.highest) {
		return takes, end, r.slow()
	}
	return takes, end, nil
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Wait waits until a time of the clock.
func (r *Pacer) Wait(ctx context.Context, until time.Time) error {
	c := r.pacing.clock
	return c.Wait(ctx, until.Sub(c.Now()))
}

// SlowHostError says that the machine was slower than the model of its drives, whose rates are therefore wrong.
type SlowHostError struct {
	Host, Model time.Duration // for the same work of a drive; of the machine
	Dilate      int           // the factor by which times were longer
	Needed      int           // the factor with which the machine would have been fast enough, with something to spare
}

func (e *SlowHostError) Error() string {
	return fmt.Sprintf("timing: this machine took %v for what a modelled drive does in %v (times are %d times as long): "+
		"it is too slow for the model, and the rates would be its own: run again with --dilate %d or more, with fewer "+
		"drives, or with --timing native", e.Host.Round(time.Microsecond), e.Model.Round(time.Microsecond), e.Dilate,
		e.Needed)
}

// spare is how much more the factor of a SlowHostError is than the host's time asks for.
const spare = 1.5

// slow returns the error of a host that was too slow.
func (r *Pacer) slow() error {
	f := r.pacing.clock.Factor()
	ratio := float64(r.host) / float64(r.model)
	return &SlowHostError{Host: r.host * time.Duration(f), Model: r.model * time.Duration(f), Dilate: f,
		Needed: max(f+1, int(math.Ceil(spare*ratio*float64(f))))}
}

// Err returns the first error of an execution, or a *SlowHostError if the machine has been slower than the model of a
// drive on the whole. Call it before using a rate.
func (p *Pacing) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		return p.failed
	}
	for _, r := range p.pacers {
		if r.host > r.model {
			return r.slow()
		}
	}
	return nil
}

// Report describes the timing of a process's drives.
type Report struct {
	Timing   Mode   `json:"timing"`
	Modelled bool   `json:"modelled"`
	Dilate   int    `json:"dilation"`
	Bound    string `json:"bound,omitempty"` // the stage that took the drives the longest
	// HostShare is the part of the modelled time in which the machine was busy with a drive's work, of the drive for
	// which it was the largest. Above 1 the machine is too slow for the model.
	HostShare float64 `json:"host_share"`
}

// Report describes the timing so far. p is nil for native timing.
func (p *Pacing) Report() Report {
	if p == nil {
		return Report{Timing: ModeNative, Dilate: 1}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	report := Report{Timing: p.mode, Modelled: true, Dilate: p.clock.Factor()}
	var spent [stageCount]time.Duration
	for _, r := range p.pacers {
		if r.model > 0 {
			report.HostShare = max(report.HostShare, float64(r.host)/float64(r.model))
		}
		for i, d := range r.spent {
			spent[i] += d
		}
	}
	if most := slices.Max(spent[:]); most > 0 {
		report.Bound = new(Times).stages()[slices.Index(spent[:], most)].name
	}
	return report
}

// String says in words which timing it was.
func (r Report) String() string {
	if !r.Modelled {
		return "native: as fast as this machine"
	}
	s := fmt.Sprintf("%s, modelled: no board ran; rates are the model's", r.Timing)
	if r.Bound != "" {
		s += ", bound by " + r.Bound
	}
	if r.Dilate > 1 {
		s += fmt.Sprintf("; times were %d times as long", r.Dilate)
	}
	return s + fmt.Sprintf("; this machine was busy for %.0f %% of them", 100*r.HostShare)
}
