package steering

import (
	"maps"
	"time"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/allocation"
)

const (
	// measureAgain is the pause before a worker is measured again whose P could not be measured.
	measureAgain = time.Minute
	// measureSeconds is about how long it takes to measure P of a worker that joins a job, with the opening of a
	// partition.
	measureSeconds = 1
)

// nextToMeasure chooses a worker that has joined since the job began, and whose P is to be measured: the mean of P
// decides how many drives the job wants. Drives that hold partitions come first. A node that knows P of the pipeline
// answers at once. Otherwise the worker is measured while it may already make splits, and the measured P is a little
// below its P alone.
func (j *Job) nextToMeasure(v *View) (at *fleet.DriveID, holder bool) {
	if j.measuring || j.tooShort(v) {
		return nil, false
	}
	for i := range v.Holders {
		if j.measurable(v, &v.Holders[i]) {
			return &v.Holders[i].ID, true
		}
	}
	for i := range v.Workers {
		if w := &v.Workers[i]; j.measurable(v, w) && j.undisturbed(w) {
			return &w.ID, false
		}
	}
	return nil, false
}

// tooShort reports whether the rest of the job takes less than api.ShortJob times as long as measuring P of a worker,
// which the worker's part of the job would not make up for.
func (j *Job) tooShort(v *View) bool {
	rows := float64(v.Status.RowsLeft) + v.EpochRows*v.EpochsAfter
	rate := 0.0
	for rank := range j.launchers {
		r := j.throughputs(v, uint32(rank))
		if r.unknown {
			return false
		}
		rate += r.own + r.others
	}
	if v.T > 0 {
		rate = min(rate, v.T)
	}
	return rows < api.ShortJob*measureSeconds*rate
}

// measurable reports whether P of a worker is not known and can be measured now.
func (j *Job) measurable(v *View, w *Worker) bool {
	failed, tried := j.failed[w.Name()]
	return v.P[w.Name()] <= 0 && w.Prepared && !(tried && v.Now.Sub(failed) < measureAgain)
}

// undisturbed reports whether the launchers measure nothing that a measurement of a worker would disturb. A rank's own
// worker uses the CPUs of the rank's trainer: the launcher measures T before its first Lease call, and its profile
// after that.
func (j *Job) undisturbed(w *Worker) bool {
	serves := w.Drive.GetServes()
	if serves == nil || serves.Job != j.ID || int64(serves.Rank) >= int64(len(j.launchers)) {
		return true
	}
	k := &j.launchers[serves.Rank]
	return k.called && !profiles(k.report)
}

// profiles reports whether a launcher measures its profile, or is about to do so.
func profiles(r *apiv1.RankReport) bool {
	return r.GetProfiling() != "" || r.GetTrainingSeconds() > 0 && r.ProfileSeconds == 0 && r.ProfileFrom == ""
}

// NotMeasured records that P of the worker that Step chose could not be measured.
func (j *Job) NotMeasured(at fleet.DriveID, now time.Time) {
	j.measuring = false
	if j.failed == nil {
		j.failed = map[string]time.Time{}
	}
	maps.DeleteFunc(j.failed, func(_ string, at time.Time) bool { return now.Sub(at) >= measureAgain })
	j.failed[(&Worker{ID: at}).Name()] = now
}

// Measured records that P of the worker that Step chose is known: the view has it. If the worker holds partitions,
// Measured returns the allocation with the number of drives that T requires now; nil: it stays. The autoscaler decides
// how many run.
func (j *Job) Measured(at fleet.DriveID, holder bool, v View) *allocation.Allocation {
	j.measuring = false
	delete(j.failed, (&Worker{ID: at}).Name())
	if !holder {
		return nil
	}
	if a, counted := j.countAgain(&v); counted {
		return &a
	}
	return nil
}
