package steering

import (
	"math"
	"slices"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/ledger"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/allocation"
	"github.com/millrace/millrace/trainmgr/autoscale"
)

// Decision is what the owner of a job does next.
type Decision struct {
	NeedsWorkers bool    // Workers of any reach have to be prepared for the job.
	T            float64 // T of the job, which all ranks have measured now; 0: it was not learned now
	Err          error   // Err is why the T that was learned allocates no drives; nil: it does, or none was learned.
	// Allocation has the numbers of drives and workers that may work from now on; nil: they stay.
	Allocation *allocation.Allocation
	Shares     []Share           // the shares of ranks that change
	Scaled     *autoscale.Record // the decision of the autoscaler; nil: the job does not run
	Measure    *fleet.DriveID    // the worker whose P is to be measured; nil: none
	Holder     bool              // The worker of Measure holds partitions of the data.
}

// Step reviews the job.
func (j *Job) Step(view View) (d Decision) {
	v := &view
	d.NeedsWorkers = j.reviewWorkers(&v.Status)
	if !v.Running {
		return d
	}
	if d.T = j.learnedRate(v.T); d.T > 0 {
		v.T, j.scaler = d.T, nil // the autoscaler starts again from ceil(T/P)
		a, err := j.Allocate(&v.Supply, &v.Rates, v.ShortMeasured)
		if d.Err = err; err == nil {
			d.Allocation, v.Allocation = &a, a
		}
	}
	if r, a := j.scale(v); a != nil {
		d.Scaled, d.Allocation = r, a
	} else {
		d.Scaled = r
	}
	d.Shares = j.shareSplits(v) // the share counts the workers that are allowed from now on
	d.Measure, d.Holder = j.nextToMeasure(v)
	j.measuring = j.measuring || d.Measure != nil
	return d
}

// reviewWorkers decides whether a job needs workers of any reach.
func (j *Job) reviewWorkers(s *ledger.JobStatus) (needs bool) {
	j.readable = s.RowsLeft == 0 || s.RowsLeft > s.Unheld
	j.attended = slices.ContainsFunc(s.Ranks, func(r ledger.RankStatus) bool { return r.Attached })
	j.leastWorkers = 0
	if s.RowsLeft > s.Unheld && j.Makers&ledger.NoAny == 0 && (!j.Makers.AllowHolders() || s.Orphans > 0) {
		j.leastWorkers = 1
	}
	return j.Makers.AllowWorkers() && (!j.Makers.AllowHolders() || s.Allowed != 0 || s.Orphans+s.Unheld > 0)
}

// learnedRate computes T from the reports of the ranks if T is not known: the slowest rank's rate times the number of
// ranks, once all ranks have measured their rates. It returns 0 if T is known or some rank has not measured its rate.
func (j *Job) learnedRate(known float64) float64 {
	if known > 0 || len(j.launchers) == 0 {
		return 0
	}
	slowest := math.Inf(1)
	for i := range j.launchers {
		rate := j.launchers[i].report.GetTRowsPerSecond()
		if !(rate > 0) {
			return 0
		}
		slowest = min(slowest, rate)
	}
	t := slowest * float64(len(j.launchers))
	if math.IsInf(t, 0) {
		return 0
	}
	return t
}

// scale decides how many drives and workers of any reach may work from now on. It returns no allocation if the numbers
// stay.
func (j *Job) scale(v *View) (*autoscale.Record, *allocation.Allocation) {
	if j.scaler == nil {
		j.scaler = autoscale.New(autoscale.Options{})
	}
	r := j.scaler.Decide(j.autoscaleInputs(v))
	workers := r.Decision.Workers
	if j.Makers.AllowWorkers() && j.Makers&ledger.NoAny != 0 {
		workers = ledger.AllWorkers // only the ranks' own workers may make splits, and all of them do
	}
	j.wantedWorkers = max(r.Decision.Workers-ownWorkers(v.Workers), 0) // the pool adds to them
	if r.Decision.Drives == j.allowedDrives && workers == j.allowedWorkers {
		return &r, nil
	}
	j.allowedDrives, j.allowedWorkers = r.Decision.Drives, workers
	a := v.Allocation
	a.Drives, a.Workers, a.Note = r.Decision.Drives, workers, r.Decision.Why
	return &r, &a
}

// ownWorkers counts the workers that serve one rank alone.
func ownWorkers(workers []Worker) (n int) {
	for i := range workers {
		if workers[i].Drive.GetServes() != nil {
			n++
		}
	}
	return n
}

// autoscaleInputs collects the inputs of the autoscaler. The last report of a rank that has detached says nothing of
// the present: its queue was empty, perhaps, because it was through.
func (j *Job) autoscaleInputs(v *View) autoscale.Inputs {
	in := autoscale.Inputs{Seconds: v.Seconds, T: v.T, P: v.MeanP(), MaxDrives: int(j.Spec.MaxDrives),
		Running: len(v.Status.Running), Rows: j.rows, Holders: len(v.Holders), Workers: len(v.Workers), Busy: v.Busy,
		Blocked: true}
	if j.Makers&ledger.NoAny == 0 && j.readable {
		in.Startable = v.Startable
	}
	least, attached := math.Inf(1), false
	for i := range j.launchers {
		in.StallSeconds = max(in.StallSeconds, j.StallSeconds(uint32(i)))
		if !v.Status.Ranks[i].Attached {
			continue
		}
		attached = true
		r := j.launchers[i].report
		in.Blocked = in.Blocked && r.GetBlocked()
		if r != nil && r.QueueBatches < least {
			least, in.QueueBatches, in.QueueLimit = r.QueueBatches, r.QueueBatches, queueLimit(r)
		}
	}
	in.Blocked = in.Blocked && attached
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
