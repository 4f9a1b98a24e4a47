package control

import (
	"encoding/json"
	"math"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/control/autoscale"
	"github.com/millrace/millrace/trainmgr/control/fleet"
	"github.com/millrace/millrace/trainmgr/control/ledger"
	"github.com/millrace/millrace/trainmgr/control/record"
)

// maxDecisions is how many of the autoscaler's decisions are kept of a job, and stored with its state.
const maxDecisions = 64

// scale decides anew how many drives a job may run.
func (l *leader) scale(j *job) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if j.Phase() != record.Running {
		return
	}
	l.learnT(j, now)
	v, err := l.ledger.Status(j.ID, now)
	if err != nil {
		return // nothing was begun
	}
	if j.scaler == nil {
		j.scaler = autoscale.New(autoscale.Options{})
	}
	r := j.scaler.Decide(l.inputs(j, &v, now))
	b, err := json.Marshal(r)
	if err != nil {
		l.logger.Error("a decision that cannot be written down", "job", j.ID, "error", err)
		return
	}
	j.decisions = append(j.decisions, b)
	j.decisions = j.decisions[max(0, len(j.decisions)-maxDecisions):]
	if r.Decision.Drives == j.allowedDrives {
		return
	}
	l.logger.Info("scaled", "job", j.ID, "from", j.allowedDrives, "to", r.Decision.Drives, "why", r.Decision.Why, "inputs", r.Inputs)
	if err := l.allow(j, r.Decision.Drives, now); err != nil {
		l.logger.Error("allow drives", "job", j.ID, "error", err)
		return
	}
	a := j.State().Allocation
	a.Drives, a.Note = r.Decision.Drives, r.Decision.Why
	j.Allocated(a)
	j.poke()
	l.settle(now)
}

// learnT takes T from the ranks where the job does not say it: as many times the slowest rank's as there are ranks, once
// all have measured it. l.mu is held.
func (l *leader) learnT(j *job, now time.Time) {
	if j.State().T > 0 {
		return
	}
	slowest := math.Inf(1)
	for i := range j.launchers {
		r := j.launchers[i].report
		if r == nil || !(r.TRowsPerSecond > 0) {
			return
		}
		slowest = min(slowest, r.TRowsPerSecond)
	}
	t := slowest * float64(len(j.launchers))
	if math.IsInf(t, 0) {
		return
	}
	j.TrainerMeasured(t)
	j.scaler = nil // it starts again, from ceil(T/P)
	a, err := l.allocate(j, j.latest(), j.State().P, t, now)
	if err != nil {
		l.logger.Warn("allocate drives", "job", j.ID, "error", err)
		return
	}
	j.Allocated(a)
}

// inputs is what the autoscaler decides by. l.mu is held.
func (l *leader) inputs(j *job, v *ledger.JobStatus, now time.Time) autoscale.Inputs {
	st := j.State()
	in := autoscale.Inputs{Seconds: now.Sub(l.began).Seconds(), T: st.T, MaxDrives: int(j.spec.MaxDrives), Running: len(v.Running), Rows: j.rows}
	for _, p := range st.P {
		in.P += p / float64(len(st.P))
	}
	if g := j.generationOf(v.Epoch); g != nil {
		seen := map[fleet.Place]bool{}
		for _, holders := range g.holders(l.fleet) {
			for _, h := range holders {
				seen[h] = true
			}
		}
		in.Holders = len(seen)
	}
	least := math.Inf(1)
	in.Blocked = true
	for i := range j.launchers {
		k := &j.launchers[i]
		stall := k.stalledSeconds
		if r := k.report; r != nil {
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
	in.Busy = l.busy(v.Running)
	return in
}

// queueLimit is how many mini-batches of the size of those in a queue it can hold; 0: not known.
func queueLimit(r *apiv1.RankReport) float64 {
	if !(r.QueueBatches > 0) || r.QueueBytes <= 0 || r.QueueLimitBytes <= 0 {
		return 0
	}
	return float64(r.QueueLimitBytes) / float64(r.QueueBytes) * r.QueueBatches
}

// busy is the mean share of time that the engines of drives work, as their nodes say; 0: not known. l.mu is held.
func (l *leader) busy(drives []ledger.DriveID) float64 {
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

// holders are the drives that hold each partition now. Looking at every partition of every drive is not done every second: only when
// a node has said something new.
func (g *generation) holders(f *fleet.Fleet) [][]fleet.Place {
	if g.holdersVersion != f.Version() || g.holdersFound == nil {
		g.holdersFound, g.holdersVersion = f.Holders(g.data.Manifest), f.Version()
	}
	return g.holdersFound
}
