package control

import (
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/record"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/allocation"
	"github.com/millrace/millrace/trainmgr/autoscale"
)

// maxDecisions is how many of the autoscaler's decisions about a job are kept, and stored with its state.
const maxDecisions = 64

// scale decides how many drives a job may run from now on.
func (c *conductor) scale() {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.job.Phase().Ended() {
		return
	}
	v, err := c.machine.Ledger.Status(c.job.ID, now)
	if err != nil {
		return // no epoch was begun
	}
	c.reviewWorkers(&v) // a waiting job is reviewed too: a worker without data may make splits that no drive can make
	if c.job.Phase() != record.Running {
		return
	}
	c.learnTrainerRate(now)
	c.shareSplits(&v, now)
	if c.job.scaler == nil {
		c.job.scaler = autoscale.New(autoscale.Options{})
	}
	r := c.job.scaler.Decide(c.autoscaleInputs(&v, now))
	b, err := json.Marshal(r)
	if err != nil {
		c.logger.Error("a decision that cannot be written down", "job", c.job.ID, "error", err)
		return
	}
	c.job.decisions = append(c.job.decisions, b)
	c.job.decisions = c.job.decisions[max(0, len(c.job.decisions)-maxDecisions):]
	workers := c.allowedWorkers(r.Decision)
	c.job.wantedWorkers = max(r.Decision.Workers-c.ownWorkers(), 0) // the pool adds to them
	if r.Decision.Drives == c.job.allowedDrives && workers == c.job.allowedWorkers {
		return
	}
	c.logger.Info("scaled", "job", c.job.ID, "from", c.job.allowedDrives, "to", r.Decision.Drives,
		"workers_from", c.job.allowedWorkers, "workers_to", workers, "why", r.Decision.Why, "inputs", r.Inputs)
	if err := c.allow(c.job, r.Decision.Drives, workers, now); err != nil {
		c.logger.Error("allow drives", "job", c.job.ID, "error", err)
		return
	}
	a := c.job.State().Allocation
	a.Drives, a.Workers, a.Note = r.Decision.Drives, workers, r.Decision.Why
	c.job.Allocated(a)
	c.job.poke()
	c.settle(now)
}

// learnTrainerRate computes T from the reports of the ranks if the job's specification has no T: the slowest rank's
// rate times the number of ranks, once all ranks have measured their rates. l.mu is held.
func (c *conductor) learnTrainerRate(now time.Time) {
	if c.job.State().T > 0 {
		return
	}
	slowest := math.Inf(1)
	for i := range c.job.launchers {
		r := c.job.launchers[i].progress
		if r == nil || !(r.TRowsPerSecond > 0) {
			return
		}
		slowest = min(slowest, r.TRowsPerSecond)
	}
	t := slowest * float64(len(c.job.launchers))
	if math.IsInf(t, 0) {
		return
	}
	c.job.TrainerMeasured(t)
	c.job.scaler = nil // the autoscaler starts again from ceil(T/P)
	a, err := c.allocate(c.job.latest(), c.job.State().P, t, now)
	if err != nil {
		c.logger.Warn("allocate drives", "job", c.job.ID, "error", err)
		return
	}
	c.job.Allocated(a)
}

// autoscaleInputs collects the inputs of the autoscaler. l.mu is held.
func (c *conductor) autoscaleInputs(v *ledger.JobStatus, now time.Time) autoscale.Inputs {
	st := c.job.State()
	in := autoscale.Inputs{Seconds: now.Sub(c.began).Seconds(), T: st.T, MaxDrives: int(c.job.spec.MaxDrives),
		Running: len(v.Running), Rows: c.job.rows}
	for _, p := range st.P {
		in.P += p / float64(len(st.P))
	}
	if g := c.job.editionOf(v.Epoch); g != nil {
		seen := map[fleet.DriveID]bool{}
		for _, holders := range g.holders(c.fleet) {
			for _, h := range holders {
				seen[h] = true
			}
		}
		for h := range seen {
			if c.employs(c.job, h) {
				in.Holders++
			}
		}
	}
	in.Workers, in.Startable = len(c.workersFor()), c.startable()
	least := math.Inf(1)
	in.Blocked = true
	for i := range c.job.launchers {
		k := &c.job.launchers[i]
		stall := k.stalledSeconds
		if r := k.progress; r != nil {
			stall += r.StallSeconds
			in.Blocked = in.Blocked && r.Blocked
			if r.QueueBatches < least {
				least, in.QueueBatches, in.QueueLimit = r.QueueBatches, r.QueueBatches, queueLimit(r)
			}
		} else {
			in.Blocked = false
		}
		in.StallSeconds = max(in.StallSeconds, stall)
	}
	in.Busy = c.meanBusy(v.Running)
	return in
}

// queueLimit returns how many mini-batches a rank's input queue can hold, by the size of the mini-batches in it; 0:
// not known.
func queueLimit(r *apiv1.RankReport) float64 {
	if !(r.QueueBatches > 0) || r.QueueBytes <= 0 || r.QueueLimitBytes <= 0 {
		return 0
	}
	return float64(r.QueueLimitBytes) / float64(r.QueueBytes) * r.QueueBatches
}

// meanBusy returns the mean share of time in which the engines of drives work, by the reports of their nodes; 0: not
// known. l.mu is held.
func (l *leader) meanBusy(drives []ledger.DriveID) float64 {
	sum := 0.0
	for _, id := range drives {
		for _, d := range l.fleet.Status(id.Node).GetDrives() {
			if d.Name == id.Name {
				sum += d.Busy / float64(max(d.Threads, 1))
			}
		}
	}
	if len(drives) == 0 {
		return 0
	}
	return sum / float64(len(drives))
}

// holders returns the drives that hold each partition now. It searches the partitions of all drives only when a node
// has reported a change, not every second.
func (g *edition) holders(f *fleet.Fleet) [][]fleet.DriveID {
	if g.holdersVersion != f.Version() || g.holdersFound == nil {
		g.holdersFound, g.holdersVersion = f.Holders(g.data.Manifest), f.Version()
	}
	return g.holdersFound
}

// driveLoads lists the drives with a known P, with the rows of an edition that each drive holds. l.mu is held.
func (l *leader) driveLoads(g *edition, p map[string]float64) []allocation.Worker {
	rows := map[string]int64{}
	var order []string
	for i, holders := range l.fleet.Holders(g.data.Manifest) {
		measured := int64(0)
		for _, h := range holders {
			if p[driveName(h)] > 0 {
				measured++
			}
		}
		for _, h := range holders { // P is known of the drives that the job lets make its splits
			name := driveName(h)
			if p[name] <= 0 {
				continue
			}
			if _, ok := rows[name]; !ok {
				order = append(order, name)
			}
			rows[name] += g.data.Manifest.Partitions[i].Rows / measured
		}
	}
	list := make([]allocation.Worker, len(order))
	for i, name := range order {
		list[i] = allocation.Worker{Name: name, RowsPerSecond: p[name], Rows: rows[name]}
	}
	return list
}

// allocate decides how many drives a job starts with: ceil(T/P). l.mu is held.
func (c *conductor) allocate(g *edition, p map[string]float64, t float64, now time.Time) (allocation.Allocation,
	error) {
	drives := c.driveLoads(g, p)
	a, err := allocation.Allocate(t, drives, int(c.job.spec.MaxDrives))
	if errors.Is(err, allocation.ErrNoWorker) && c.job.workersMake() {
		a, err = allocation.Allocation{RowsPerSecond: t, P: map[string]float64{}}, nil // workers of any reach make all rows
	}
	if err != nil {
		return a, err
	}
	a.Workers = c.gap(g, drives, p, t)
	a.Note = gapWords(a.Note, a.Workers)
	if c.job.short {
		a.Note += "; P is that of the first mini-batches: the job is too short to measure it"
	}
	if a.Workers > 0 && len(c.workersFor()) >= a.Workers {
		a.ExpectedStall, a.Time = 0, a.TrainerTime // these workers make the splits that the drives cannot make
	}
	c.logger.Info("allocated drives", "job", c.job.ID, "drives", a.Drives, "wanted", a.Wanted, "workers", a.Workers,
		"t_rows_per_second", t, "expected_stall_seconds", a.ExpectedStall.Seconds(), "note", a.Note)
	return a, c.allow(c.job, a.Drives, a.Workers, now)
}

// allow sets in the ledger how many drives a job may run, and how many workers of any reach beside them. l.mu is
// held.
func (l *leader) allow(j *job, drives, workers int, now time.Time) error {
	j.allowedDrives, j.allowedWorkers = drives, workers
	return errors.Join(l.machine.Ledger.Allocate(j.ID, drives, now), l.machine.Ledger.AllowWorkers(j.ID, workers, now))
}

// ownWorkers counts the live workers that serve one rank of the job alone. l.mu is held.
func (c *conductor) ownWorkers() (n int) {
	for _, at := range c.workersFor() {
		if c.servedRank(at) != nil {
			n++
		}
	}
	return n
}

// allowedWorkers returns the number of workers of any reach that a decision allows. A job whose splits only the
// ranks' own workers may make is allowed all of these workers. l.mu is held.
func (c *conductor) allowedWorkers(d autoscale.Decision) int {
	if c.job.workersMake() && c.job.makers&ledger.NoAny != 0 {
		return ledger.AllWorkers
	}
	return d.Workers
}
