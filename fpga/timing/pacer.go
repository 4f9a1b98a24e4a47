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
	boards []*board
	failed error
}

// NewPacing returns the timing of a mode, in which modelled times are dilate times as long. The mode is not ModeNative.
func NewPacing(m Mode, dilate int) *Pacing { return &Pacing{mode: m, clock: clock.New(dilate)} }

// Clock returns the clock on which the drives take the modelled time. Rates that are measured on it are those of the
// model.
func (p *Pacing) Clock() *clock.Clock { return p.clock }

// Mode returns whose time it is.
func (p *Pacing) Mode() Mode { return p.mode }

// Pacer makes the executions of one drive, or of one region of a drive, end no earlier than the model says. NewPacer
// makes one.
type Pacer struct {
	pacing  *Pacing
	board   *board
	region  int
	threads int

	free    [stageCount]time.Time     // when each stage has done its work so far; the first has all without overlap
	last    time.Time                 // when the latest execution ends, by the estimate that was made when it came
	spent   [stageCount]time.Duration // The model's time by stage.
	model   time.Duration             // The model's time for all work.
	host    time.Duration             // The host's threads took this time for it, on the same clock.
	behind  time.Duration             // The host has taken this time more than the model of late; not below 0.
	highest time.Duration             // The model's time for one slice, at most.
}

// board is a drive: its regions, and the stages that they share, which are the P2P link and the device memory.
type board struct {
	regions []*Pacer
	stages  [stageCount]sharedStage // those that regions share
}

// NewPacer returns the pacer of a drive of one region with engine threads.
func (p *Pacing) NewPacer(threads int) *Pacer { return p.NewPacers(threads, []int{1})[0] }

// NewPacers returns the pacers of a drive's regions, each with a weight and engine threads for each of its weight.
func (p *Pacing) NewPacers(threads int, weights []int) []*Pacer {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &board{}
	for i := range b.stages {
		b.stages[i] = newSharedStage(weights)
	}
	for i, weight := range weights {
		b.regions = append(b.regions, &Pacer{pacing: p, board: b, region: i, threads: max(threads, 1) * weight})
	}
	p.boards = append(p.boards, b)
	return b.regions
}

// Execution is one execution of a drive.
type Execution struct {
	Image *image.Image  // Image is the active one.
	Work  Work          // Work is what it did.
	Text  bool          // The model does not know text sources.
	Came  time.Time     // Came is when its command came, on the drive's clock.
	Host  time.Duration // Host is what moving and executing took on the machine, without waits.
}

// tolerance is how long the host may be behind the model before it is an error, in time of the machine. A pause of the
// scheduler or of a disk takes less.
const tolerance = time.Second

// tolerantSlices is how many slices the host may be behind the model: of long ones, a few may be late.
const tolerantSlices = 4

// End is when an execution ends: once its region's own stages have, and the stages that regions share have done its
// work.
type End struct {
	own    time.Time
	shared [stageCount]sharedWork
}

// sharedWork is the work of an execution for a stage that regions share.
type sharedWork struct {
	target float64       // total of the region's finished work at which this work is finished; 0: there is no work
	last   time.Time     // when the stage finishes this work, by the last estimate
	then   time.Duration // from last to the end of the execution
}

// Take counts an execution, and returns how long the model says that it takes, and its end. It fails if the model does
// not know the work, and if the host has been slower than the model for too long; after an error it always fails.
//
// With double buffers, each stage begins when the command has come and the stage has done its earlier work, and the
// execution ends when all stages have ended: the drive is as fast as its slowest stage, once it has two commands at a
// time. Without, an execution begins when the one before it has ended. The regions of a drive have units of their own,
// and share the P2P link from the flash and the device memory; takes is the time of a region that has both alone.
func (r *Pacer) Take(x Execution) (takes time.Duration, end *End, err error) {
	p := r.pacing
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		takes, end, p.failed = r.takeExecution(x)
	}
	return takes, end, p.failed
}

// takeExecution is Take. p.mu is held.
func (r *Pacer) takeExecution(x Execution) (takes time.Duration, end *End, err error) {
	d, err := r.pacing.mode.deviceOfImage(x.Image)
	if err != nil {
		return 0, nil, err
	}
	if x.Text {
		return 0, nil, fmt.Errorf("timing: the model of drives has no stage for unit %s: use Parquet files, or timing "+
			"native", program.UnitText)
	}
	if err := d.CheckWork(x.Work); err != nil {
		return 0, nil, err
	}
	t := d.Times(x.Work)
	end = &End{own: x.Came}
	if takes = toDuration(t.Period(false)); takes == 0 {
		return 0, end, nil
	}
	for i, s := range t.byStage() {
		if s.output {
			continue
		}
		took := toDuration(s.seconds)
		r.spent[i] += took
		switch {
		case s.shared && took > 0:
			w := &end.shared[i]
			w.target = r.board.stages[i].addWork(r.region, x.Came, s.seconds)
			if !d.Overlap {
				w.then = takes - took
			}
		case d.Overlap:
			r.free[i] = laterOf(r.free[i], x.Came).Add(took)
			end.own = laterOf(end.own, r.free[i])
		}
	}
	if !d.Overlap {
		r.free[0] = laterOf(r.free[0], x.Came).Add(takes)
		end.own = r.free[0]
	}
	// Beside other regions an execution takes longer than alone.
	until, modelled := r.knownEnd(end), takes
	if len(r.board.regions) > 1 {
		modelled = max(takes, until.Sub(laterOf(r.last, x.Came)))
	}
	r.last = laterOf(r.last, until)
	r.model += modelled
	r.highest = max(r.highest, modelled)
	host := x.Host / time.Duration(r.threads*r.pacing.clock.Factor())
	r.host += host
	r.behind = max(0, r.behind+host-modelled)
	if r.behind > max(tolerance/time.Duration(r.pacing.clock.Factor()), tolerantSlices*r.highest) {
		return takes, end, r.slownessError()
	}
	return takes, end, nil
}

// knownEnd estimates an end again, and returns it: work that other regions queued since the last estimate delays it.
// p.mu is held.
func (r *Pacer) knownEnd(e *End) time.Time {
	until := e.own
	for i := range e.shared {
		w := &e.shared[i]
		if w.target == 0 {
			continue
		}
		if at, ok := r.board.stages[i].endOfWork(r.region, w.target); ok {
			w.last = at
		}
		until = laterOf(until, w.last.Add(w.then))
	}
	return until
}

func toDuration(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Wait waits until an execution ends.
func (r *Pacer) Wait(ctx context.Context, end *End) error {
	c := r.pacing.clock
	for {
		left := r.expectedEnd(end).Sub(c.Now())
		if err := c.Wait(ctx, left); err != nil || left <= 0 {
			return err
		}
	}
}

// expectedEnd returns when an execution ends, as far as is known.
func (r *Pacer) expectedEnd(e *End) time.Time {
	r.pacing.mu.Lock()
	defer r.pacing.mu.Unlock()
	return r.knownEnd(e)
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

// slownessError returns the error of a host that was too slow.
func (r *Pacer) slownessError() error {
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
	for _, b := range p.boards {
		for _, r := range b.regions {
			if r.host > r.model {
				return r.slownessError()
			}
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
	for _, b := range p.boards {
		for _, r := range b.regions {
			if r.model > 0 {
				report.HostShare = max(report.HostShare, float64(r.host)/float64(r.model))
			}
		}
		for i, d := range b.timeByStage() {
			spent[i] += d
		}
	}
	if most := slices.Max(spent[:]); most > 0 {
		report.Bound = new(Times).byStage()[slices.Index(spent[:], most)].name
	}
	return report
}

// timeByStage returns how long each stage worked. A stage that regions share worked for all of them. Of the other
// stages, which the regions have at the same time, the region in which the stage worked longest counts.
func (b *board) timeByStage() (spent [stageCount]time.Duration) {
	for i, s := range new(Times).byStage() {
		for _, r := range b.regions {
			if s.shared {
				spent[i] += r.spent[i]
			} else {
				spent[i] = max(spent[i], r.spent[i])
			}
		}
	}
	return spent
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
