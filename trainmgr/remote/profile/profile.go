// Package profile measures FastFlow's metrics of a rank over the first mini-batches of its job, for the share of the
// rank's own CPUs.
//
// # Overview
//
// A [Profiler] asks the control plane, through the rank's reports, that one side makes every split of the rank: first
// the rank's own CPUs, and then all other workers. It observes the training, repeats no step and drops no mini-batch:
// the rank tells it which side made a fragment of a mini-batch (NoteMade) and that the trainer takes one (NoteTaken).
//
// # Concurrency
//
// A Profiler may be used from any goroutine. It calls its sample with its lock held. A nil Profiler measures nothing.
package profile

import (
	"math"
	"sync"
	"time"

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/offload"
)

const (
	profileSteps     = trainmgr.DefaultProfileSteps // least number of mini-batches of a window, and half of the most
	profileWarmup    = 4                            // mini-batches of a side before its window
	profileTime      = 500 * time.Millisecond       // a window lasts as long unless it has 2*profileSteps before
	profilePatience  = 8 * profileSteps             // mini-batches in which a side must fill a window
	sidePatience     = 10 * time.Second             // least time in which a side must fill a window
	leastMiniBatches = 100 * profileSteps           // mini-batches of a job below which a profile would take too much
	leastInEpoch     = 4 * profileSteps             // a window lies inside an epoch
	steadyDrain      = 10                           // a steady window takes at most one in ten from the queue
	shortestMeasured = 1e-9                         // seconds: the clock may stand still

	// profileSeconds is about how long a profile takes: for each side the leader's next two reviews of the share, and the
	// window.
	profileSeconds = 5
)

// NoStall is the ratio Gthp/Lthp below which nothing is offloaded (FastFlow, Algorithm 1).
const NoStall = 1.1

// Profiler measures FastFlow's metrics of a rank over the first mini-batches of its job. It asks the control plane
// that one side, first the rank's own CPUs and then all other workers, makes every split of the rank, and observes the
// training. It repeats no step and drops no mini-batch.
type Profiler struct {
	trainer Trainer
	cores   float64
	sample  func() Sample    // the counters now
	clock   func() time.Time // for reports, whose callers hold locks that sample takes
	began   time.Time

	mu       sync.Mutex
	ahead    uint64    // mini-batches of the rank that are left in the job; 0: the job is long enough
	looked   uint64    // mini-batches that were taken since lookedAt
	lookedAt time.Time // when the trainer took its first mini-batch
	short    bool      // the job takes less than api.ShortJob times as long as the profile, which is left out
	begun    bool      // the trainer takes mini-batches, and the job is long enough: a side makes every split
	measured string    // the side that must make every split now; empty: the profile has ended
	result   *apiv1.OffloadMetrics
	from     string // origin of result: a word of RankReport.profile_from
	took     time.Duration
	left     int // mini-batches until the side must have filled its window
	patience int // left at the beginning of a side
	// sideBegan is when the side was asked for. The leader may need a second to give it every split.
	sideBegan time.Time
	// makers has the side of each mini-batch that came, in whole or in part, and was not taken; a mini-batch whose
	// fragments both sides made has bothSides.
	makers map[tensor.Name]string
	epoch  uint64

	seen  int // mini-batches of the warm-up, and then of the window
	rows  int
	begin *Sample       // The window begins with it; nil means that it has not begun.
	local *profiledSide // nil: not measured yet
}

// Trainer is what was measured of the trainer alone, on a dummy mini-batch.
type Trainer struct {
	RowsPerSecond float64 // 0: not known
	CPUPerRow     float64 // seconds
	CPUKnown      bool
}

// Sample holds a rank's counters at a moment.
type Sample struct {
	At     time.Time
	Stall  time.Duration // the trainer has waited for mini-batches
	Queued int           // mini-batches in the input queue
	CPU    time.Duration // CPU is what this process used, which holds the trainer and the rank's own worker.
}

// profiledSide holds the measurements of a side with the trainer.
type profiledSide struct {
	rowsPerSecond float64
	trainer       float64 // rows a second while the trainer did not wait
	cpuPerRow     float64 // seconds of this process
}

// New begins a profile. sample returns the rank's counters now.
func New(trainer Trainer, cores float64, sample func() Sample) *Profiler {
	p := &Profiler{
		trainer: trainer, cores: cores, sample: sample, clock: time.Now, measured: apiv1.SideOwn,
		makers: map[tensor.Name]string{}, patience: profilePatience,
	}
	first := sample()
	p.began, p.sideBegan = first.At, first.At
	p.patience += first.Queued
	p.left = p.patience
	return p
}

// PolicyDecides reports whether a policy decides a job's shares.
func PolicyDecides(spec *apiv1.JobSpec) bool {
	_, err := offload.ParsePolicy(spec.GetOffload())
	return err == nil && spec.GetOffload() != ""
}

// Suits reports whether a policy decides a job's shares, and the job is long enough for a profile of a rank that owns
// so many mini-batches of the epoch. ahead is how many mini-batches of the rank are left in the job.
func Suits(spec *apiv1.JobSpec, epoch, owned uint64) (ahead uint64, suits bool) {
	epochs := max(spec.GetEpochs(), 1)
	if !PolicyDecides(spec) || owned < leastInEpoch || epochs <= epoch {
		return 0, false
	}
	ahead = owned * min(epochs-epoch, math.MaxUint32)
	return ahead, ahead >= leastMiniBatches
}

// LookAhead makes a profiler that has measured nothing look whether the rest of the job, as many mini-batches of the
// rank, takes several times as long as the profile.
func (p *Profiler) LookAhead(miniBatches uint64) { p.ahead = miniBatches }

// bothSides stands for the sides of a mini-batch whose fragments both sides made. It counts for neither.
const bothSides = "both"

// NoteMade records which side made a fragment that has come of a mini-batch. A nil profiler records nothing.
func (p *Profiler) NoteMade(name tensor.Name, own bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.measured == "" {
		return
	}
	side := apiv1.SideOthers
	if own {
		side = apiv1.SideOwn
	}
	if before, known := p.makers[name]; known && before != side {
		side = bothSides
	}
	p.makers[name] = side
}

// NoteTaken counts a mini-batch that the trainer takes. It reports whether the profile has ended with it.
func (p *Profiler) NoteTaken(mb *tensor.MiniBatch) (ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.measured == "" {
		return false
	}
	if !p.begun {
		now := p.sample()
		if p.begun = p.looksLong(now.At); p.short {
			p.finish(now)
			return true
		}
		if !p.begun {
			delete(p.makers, mb.Name)
			return false
		}
		p.sideBegan = now.At
	}
	side := p.makers[mb.Name]
	delete(p.makers, mb.Name)
	p.left--
	if mb.Name.Epoch != p.epoch { // the trainer waited for the other ranks
		p.epoch = mb.Name.Epoch
		p.restart()
	}
	switch {
	case side != p.measured:
		p.restart()
	case p.begin == nil:
		if p.seen++; p.seen > profileWarmup {
			now := p.sample()
			p.seen, p.begin = 0, &now
		}
	default:
		p.seen++
		p.rows += mb.Rows
		if p.seen >= profileSteps {
			now := p.sample()
			switch {
			case now.At.Sub(p.begin.At) < profileTime && p.seen < 2*profileSteps:
			case p.drained(now):
				p.nextWindow(now)
			default:
				p.noteSide(p.side(now, mb.Rows), now)
				return p.measured == ""
			}
		}
	}
	if p.left <= 0 && p.left%profileSteps == 0 {
		if now := p.sample(); now.At.Sub(p.sideBegan) >= sidePatience { // the side makes too little, or nothing
			p.finish(now)
		}
	}
	return p.measured == ""
}

// looksLong reports whether the profile may begin: the rest of the job takes at least api.ShortJob times as long, at
// the rate of the first mini-batches. It sets short if that is not so. p.mu is held.
func (p *Profiler) looksLong(now time.Time) bool {
	if p.ahead == 0 {
		return true
	}
	if p.lookedAt.IsZero() {
		p.lookedAt = now
		return false
	}
	p.looked++
	elapsed := now.Sub(p.lookedAt)
	if elapsed < profileTime {
		return false
	}
	left := float64(p.ahead) - float64(p.looked)
	p.short = left*elapsed.Seconds() < api.ShortJob*profileSeconds*float64(p.looked)
	return !p.short
}

// drained reports whether the trainer took so much of a window from the queue that the window says little: a trainer
// that does not wait may leave the side less CPU time than one that does. Once the queue is empty, the trainer and the
// side have the same rate. p.mu is held.
func (p *Profiler) drained(now Sample) bool {
	return steadyDrain*(p.begin.Queued-now.Queued) > p.seen
}

// nextWindow begins another window where one ends. p.mu is held.
func (p *Profiler) nextWindow(now Sample) { p.seen, p.rows, p.begin = 0, 0, &now }

// restart begins the window again. p.mu is held.
func (p *Profiler) restart() { p.seen, p.rows, p.begin = 0, 0, nil }

// finish ends the profile. p.mu is held.
func (p *Profiler) finish(now Sample) {
	p.measured, p.makers, p.took = "", nil, now.At.Sub(p.began)
	if p.result != nil {
		p.from = apiv1.ProfileMeasured
	}
}

// side returns the measurements of the window. Mini-batches that waited when the window began were made before it.
// p.mu is held.
func (p *Profiler) side(end Sample, rows int) profiledSide {
	seconds := math.Max(end.At.Sub(p.begin.At).Seconds(), shortestMeasured)
	made := max(p.rows-max(0, p.begin.Queued-end.Queued)*rows, 1)
	stalled := math.Min(math.Max((end.Stall-p.begin.Stall).Seconds(), 0), seconds)
	return profiledSide{
		rowsPerSecond: float64(made) / seconds,
		trainer:       float64(p.rows) / math.Max(seconds-stalled, shortestMeasured),
		cpuPerRow:     math.Max((end.CPU-p.begin.CPU).Seconds(), 0) / float64(max(p.rows, 1)),
	}
}

// noteSide takes the measurements of a side. If the trainer hardly waits for the rank's own CPUs, noteSide leaves out
// the other workers. p.mu is held.
func (p *Profiler) noteSide(side profiledSide, now Sample) {
	p.restart()
	p.left, p.sideBegan = p.patience, now.At
	if p.local == nil {
		p.local = &side
		if p.gthp(side) >= NoStall*side.rowsPerSecond {
			p.measured = apiv1.SideOthers
			return
		}
		p.result = p.metrics(side, nil)
	} else {
		p.result = p.metrics(*p.local, &side)
	}
	p.finish(now)
}

// gthp returns the throughput of the trainer alone: T, or the highest throughput while the trainer did not wait.
func (p *Profiler) gthp(sides ...profiledSide) float64 {
	if p.trainer.RowsPerSecond > 0 {
		return p.trainer.RowsPerSecond
	}
	gthp := 0.0
	for _, side := range sides {
		gthp = math.Max(gthp, side.trainer)
	}
	return gthp
}

// metrics returns the profile. If the CPU time of the trainer alone is not known, the CPU times of the sides contain
// it, and are left out.
func (p *Profiler) metrics(local profiledSide, others *profiledSide) *apiv1.OffloadMetrics {
	m := &apiv1.OffloadMetrics{Gthp: p.gthp(local), Lthp: local.rowsPerSecond, Cores: p.cores}
	if p.trainer.CPUKnown {
		m.Tcycle, m.Pcycle = p.trainer.CPUPerRow, math.Max(local.cpuPerRow-p.trainer.CPUPerRow, 0)
	}
	if others != nil {
		m.Gthp, m.Rthp = p.gthp(local, *others), others.rowsPerSecond
		if m.Pcycle > 0 {
			m.Ocycle = math.Max(others.cpuPerRow-p.trainer.CPUPerRow, 0)
		}
	}
	return m
}

// Report fills in the fields of a report. A nil profiler measures nothing.
func (p *Profiler) Report(r *apiv1.RankReport) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun {
		r.Profiling, r.Profile = p.measured, p.result
	}
	status := p.statusAt(p.clock())
	r.ProfileFrom, r.ProfileSeconds, r.TrainingSeconds = status.From, status.Seconds, status.Training
}

// Ended reports whether the profile has ended, its result, which may be nil, and how long the profile took.
func (p *Profiler) Ended() (ended bool, result *apiv1.OffloadMetrics, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.measured == "", p.result, p.took
}

// Stored returns a profiler that has its result from the store and measures nothing. took is how long the search in the
// store took.
func Stored(result *apiv1.OffloadMetrics, took time.Duration) *Profiler {
	return &Profiler{
		clock: time.Now, began: time.Now().Add(-took), begun: true, result: result, took: took, from: apiv1.ProfileStored,
	}
}

// KnowOwn makes a profiler that has measured nothing measure only the other workers.
func (p *Profiler) KnowOwn(m *offload.Metrics) {
	p.local = &profiledSide{rowsPerSecond: m.Lthp, trainer: m.Gthp, cpuPerRow: m.Pcycle + m.Tcycle}
	p.measured = apiv1.SideOthers
}

// Status describes a rank's profile.
type Status struct {
	From     string  // apiv1.ProfileMeasured, apiv1.ProfileStored, or empty: there is none, or not yet
	Seconds  float64 // Seconds is how long the profile took.
	Training float64 // seconds since the rank attached
	LeftOut  bool    // the job takes less than api.ShortJob times as long as the profile
}

// Status describes the profile. A nil profiler has none.
func (p *Profiler) Status() Status {
	if p == nil {
		return Status{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.statusAt(p.clock())
}

// statusAt describes the profile at a time. p.mu is held.
func (p *Profiler) statusAt(now time.Time) Status {
	s := Status{From: p.from, Seconds: p.took.Seconds(), Training: now.Sub(p.began).Seconds(),
		LeftOut: p.short}
	if p.measured != "" && p.begun {
		s.Seconds = s.Training
	}
	return s
}
