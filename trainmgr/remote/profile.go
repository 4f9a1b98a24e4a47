package remote

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/processors"
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
	leastProfiled    = 100 * profileSteps           // mini-batches of a job below which a profile would take too much
	leastInEpoch     = 4 * profileSteps             // a window lies inside an epoch
	noStall          = 1.1                          // Gthp/Lthp below which nothing is offloaded (FastFlow, Algorithm 1)
	steadyDrain      = 10                           // a steady window takes at most one in ten from the queue
	shortestMeasured = 1e-9                         // seconds: the clock may stand still

	// profileSeconds is about how long a profile takes: for each side the leader's next two reviews of the share, and the
	// window.
	profileSeconds = 5
)

// profiler measures FastFlow's metrics of a rank over the first mini-batches of its job. It asks the control plane
// that one side, first the rank's own CPUs and then all other workers, makes every split of the rank, and observes the
// training. It repeats no step and drops no mini-batch.
type profiler struct {
	trainer trainerSpeed
	cores   float64
	sample  func() profileSample // the counters now
	clock   func() time.Time     // for reports, whose callers hold locks that sample takes
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
	own       map[tensor.Name]bool // mini-batches that came and were not taken, by whether the rank's own CPUs made them
	epoch     uint64

	seen  int // mini-batches of the warm-up, and then of the window
	rows  int
	begin *profileSample // The window begins with it; nil means that it has not begun.
	local *profiledSide  // nil: not measured yet
}

// trainerSpeed is what was measured of the trainer alone, on a dummy mini-batch.
type trainerSpeed struct {
	rowsPerSecond float64 // 0: not known
	cpuPerRow     float64 // seconds
	cpuKnown      bool
}

// profileSample holds a rank's counters at a moment.
type profileSample struct {
	at     time.Time
	stall  time.Duration // the trainer has waited for mini-batches
	queued int           // mini-batches in the input queue
	cpu    time.Duration // cpu is what this process used, which holds the trainer and the rank's own worker.
}

// profiledSide holds the measurements of a side with the trainer.
type profiledSide struct {
	rowsPerSecond float64
	trainer       float64 // rows a second while the trainer did not wait
	cpuPerRow     float64 // seconds of this process
}

// newProfiler begins a profile.
func newProfiler(trainer trainerSpeed, cores float64, sample func() profileSample) *profiler {
	p := &profiler{
		trainer: trainer, cores: cores, sample: sample, clock: time.Now, measured: apiv1.SideOwn, own: map[tensor.Name]bool{},
		patience: profilePatience,
	}
	first := sample()
	p.began, p.sideBegan = first.at, first.at
	p.patience += first.queued
	p.left = p.patience
	return p
}

// policyDecides reports whether a policy decides a job's shares.
func policyDecides(spec *apiv1.JobSpec) bool {
	_, err := offload.ParsePolicy(spec.GetOffload())
	return err == nil && spec.GetOffload() != ""
}

// suitsProfile reports whether a policy decides a job's shares, and the job is long enough for a profile. ahead is how
// many mini-batches of the rank are left in the job.
func suitsProfile(spec *apiv1.JobSpec, epoch *trainmgr.Epoch) (ahead uint64, suits bool) {
	if !policyDecides(spec) {
		return 0, false
	}
	owned := uint64(0)
	for _, numbers := range epoch.Owned {
		owned += numbers.To - numbers.From
	}
	epochs := max(spec.GetEpochs(), 1)
	if owned < leastInEpoch || epochs <= epoch.Number {
		return 0, false
	}
	ahead = owned * min(epochs-epoch.Number, math.MaxUint32)
	return ahead, ahead >= leastProfiled
}

// noteMade records which side made a mini-batch that has come. A nil profiler records nothing.
func (p *profiler) noteMade(name tensor.Name, own bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.measured != "" {
		p.own[name] = own
	}
}

// noteTaken counts a mini-batch that the trainer takes. It reports whether the profile has ended with it.
func (p *profiler) noteTaken(mb *tensor.MiniBatch) (ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.measured == "" {
		return false
	}
	if !p.begun {
		now := p.sample()
		if p.begun = p.looksLong(now.at); p.short {
			p.finish(now)
			return true
		}
		if !p.begun {
			delete(p.own, mb.Name)
			return false
		}
		p.sideBegan = now.at
	}
	own, known := p.own[mb.Name]
	delete(p.own, mb.Name)
	p.left--
	if mb.Name.Epoch != p.epoch { // the trainer waited for the other ranks
		p.epoch = mb.Name.Epoch
		p.restart()
	}
	switch {
	case !known || own != (p.measured == apiv1.SideOwn):
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
			case now.at.Sub(p.begin.at) < profileTime && p.seen < 2*profileSteps:
			case p.drained(now):
				p.nextWindow(now)
			default:
				p.noteSide(p.side(now, mb.Rows), now)
				return p.measured == ""
			}
		}
	}
	if p.left <= 0 && p.left%profileSteps == 0 {
		if now := p.sample(); now.at.Sub(p.sideBegan) >= sidePatience { // the side makes too little, or nothing
			p.finish(now)
		}
	}
	return p.measured == ""
}

// looksLong reports whether the profile may begin: the rest of the job takes at least api.ShortJob times as long, at
// the rate of the first mini-batches. It sets short if that is not so. p.mu is held.
func (p *profiler) looksLong(now time.Time) bool {
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
func (p *profiler) drained(now profileSample) bool {
	return steadyDrain*(p.begin.queued-now.queued) > p.seen
}

// nextWindow begins another window where one ends. p.mu is held.
func (p *profiler) nextWindow(now profileSample) { p.seen, p.rows, p.begin = 0, 0, &now }

// restart begins the window again. p.mu is held.
func (p *profiler) restart() { p.seen, p.rows, p.begin = 0, 0, nil }

// finish ends the profile. p.mu is held.
func (p *profiler) finish(now profileSample) {
	p.measured, p.own, p.took = "", nil, now.at.Sub(p.began)
	if p.result != nil {
		p.from = apiv1.ProfileMeasured
	}
}

// side returns the measurements of the window. Mini-batches that waited when the window began were made before it.
// p.mu is held.
func (p *profiler) side(end profileSample, rows int) profiledSide {
	seconds := math.Max(end.at.Sub(p.begin.at).Seconds(), shortestMeasured)
	made := max(p.rows-max(0, p.begin.queued-end.queued)*rows, 1)
	stalled := math.Min(math.Max((end.stall-p.begin.stall).Seconds(), 0), seconds)
	return profiledSide{
		rowsPerSecond: float64(made) / seconds,
		trainer:       float64(p.rows) / math.Max(seconds-stalled, shortestMeasured),
		cpuPerRow:     math.Max((end.cpu-p.begin.cpu).Seconds(), 0) / float64(max(p.rows, 1)),
	}
}

// noteSide takes the measurements of a side. If the trainer hardly waits for the rank's own CPUs, noteSide leaves out
// the other workers. p.mu is held.
func (p *profiler) noteSide(side profiledSide, now profileSample) {
	p.restart()
	p.left, p.sideBegan = p.patience, now.at
	if p.local == nil {
		p.local = &side
		if p.gthp(side) >= noStall*side.rowsPerSecond {
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
func (p *profiler) gthp(sides ...profiledSide) float64 {
	if p.trainer.rowsPerSecond > 0 {
		return p.trainer.rowsPerSecond
	}
	gthp := 0.0
	for _, side := range sides {
		gthp = math.Max(gthp, side.trainer)
	}
	return gthp
}

// metrics returns the profile. If the CPU time of the trainer alone is not known, the CPU times of the sides contain
// it, and are left out.
func (p *profiler) metrics(local profiledSide, others *profiledSide) *apiv1.OffloadMetrics {
	m := &apiv1.OffloadMetrics{Gthp: p.gthp(local), Lthp: local.rowsPerSecond, Cores: p.cores}
	if p.trainer.cpuKnown {
		m.Tcycle, m.Pcycle = p.trainer.cpuPerRow, math.Max(local.cpuPerRow-p.trainer.cpuPerRow, 0)
	}
	if others != nil {
		m.Gthp, m.Rthp = p.gthp(local, *others), others.rowsPerSecond
		if m.Pcycle > 0 {
			m.Ocycle = math.Max(others.cpuPerRow-p.trainer.cpuPerRow, 0)
		}
	}
	return m
}

// report fills in the fields of a report. A nil profiler measures nothing.
func (p *profiler) report(r *apiv1.RankReport) {
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

// ended reports whether the profile has ended, its result, which may be nil, and how long the profile took.
func (p *profiler) ended() (ended bool, result *apiv1.OffloadMetrics, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.measured == "", p.result, p.took
}

// noteTaken counts a mini-batch that the trainer takes.
func (r *rank) noteTaken(mb *tensor.MiniBatch) {
	if !r.profiler.noteTaken(mb) {
		return
	}
	_, result, took := r.profiler.ended()
	if r.profiler.status().LeftOut {
		r.client.options.Logger.Info("no profile: the job takes less than five times as long", "job", r.id,
			"rank", r.options.Rank)
		return
	}
	if result == nil {
		r.client.options.Logger.Info("no profile: one side made too few mini-batches", "job", r.id,
			"rank", r.options.Rank, "took_seconds", took.Seconds())
		return
	}
	r.client.options.Logger.Info("profile", "job", r.id, "rank", r.options.Rank, "took_seconds", took.Seconds(),
		"gthp", result.Gthp, "lthp", result.Lthp, "pcycle", result.Pcycle, "rthp", result.Rthp, "ocycle", result.Ocycle,
		"tcycle", result.Tcycle, "cores", result.Cores)
	r.stored.put(r, result)
}

// sample returns the rank's counters.
func (r *rank) sample() profileSample {
	s := profileSample{at: time.Now(), cpu: processors.Time()}
	r.mu.Lock()
	l := r.leases
	r.mu.Unlock()
	if l != nil {
		queue := l.delivery.Status().Queue
		s.stall, s.queued = queue.Stall, queue.MiniBatches
	}
	return s
}

// measuredStep returns a step that adds up the rows and the CPU time of its runs.
func measuredStep(step trainmgr.Step, rows *int64, cpu *time.Duration) trainmgr.Step {
	run := step.Run
	if run != nil {
		step.Run = func(ctx context.Context, mb *tensor.MiniBatch) error {
			before := processors.Time()
			err := run(ctx, mb)
			*cpu += processors.Time() - before
			*rows += int64(mb.Rows)
			return err
		}
	}
	return step
}
