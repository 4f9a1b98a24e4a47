package steering

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/record"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/autoscale"
)

// Terms are the values of a job's specification on which its steering depends. They never change.
type Terms struct {
	ID        string // A worker of one rank names its job by ID.
	Spec      *apiv1.JobSpec
	Makers    ledger.Makers // the workers that make no split of the job
	Offload   record.Offload
	BatchRows int // rows of a mini-batch
}

// Job is the steering of one job.
type Job struct {
	Terms
	launchers []launcher // by rank
	scaler    *autoscale.Controller
	rows      float64 // rows acknowledged in the owner's term, by all ranks

	allowedDrives  int // drives that may work at once, as decided last; 0: no bound
	allowedWorkers int // workers of any reach that may work beside them; ledger.AllWorkers: no bound
	wantedWorkers  int // workers of any reach that the autoscaler wants, even if fewer live
	leastWorkers   int // workers of any reach without which the job cannot go on

	readable bool // a worker without files of its own machine can read what is left of the job's epoch
	attended bool // a rank is attached

	measuring bool                 // P of a worker is being measured
	failed    map[string]time.Time // by worker: when P could not be measured
}

// launcher is what a rank's launcher reported, and what was decided for the rank.
type launcher struct {
	report         *apiv1.RankReport     // the last one of the session; nil: there is none
	called         bool                  // the launcher's session has called Lease
	stalledSeconds float64               // stalledSeconds is the sum of sessions that ended.
	profile        *apiv1.OffloadMetrics // replaced when the launcher reports another profile; nil: none came
	profileCost    profileCost           // The last report with a cost had this one.
	division       *division             // nil: no policy divides the rank's splits
}

// New returns the steering of a job that has not begun.
func New(t Terms) *Job { return &Job{Terms: t, launchers: make([]launcher, t.Spec.Ranks)} }

// Allowed returns how many drives may work for the job at once, and how many workers of any reach beside them, as
// decided last.
func (j *Job) Allowed() (drives, workers int) { return j.allowedDrives, j.allowedWorkers }

// Restore takes the numbers that an earlier owner of the job decided last.
func (j *Job) Restore(drives, workers int) { j.allowedDrives, j.allowedWorkers = drives, workers }

// Attached records that a rank's launcher has attached. The share, its tuner and the profile stay if the session is of
// the same run as the one before: a launcher in Python has a session for each epoch.
func (j *Job) Attached(rank uint32, sameRun bool) {
	k := &j.launchers[rank]
	if k.division != nil {
		k.division.former = k.division.former.plus(k.report)
	}
	if !sameRun {
		k.division, k.profile, k.profileCost = nil, nil, profileCost{}
	}
	k.stalledSeconds, k.report, k.called = k.stalledSeconds+k.report.GetStallSeconds(), nil, false
}

// Called records a Lease call of a rank's session, and the launcher's report, unless the call has none.
func (j *Job) Called(rank uint32, r *apiv1.RankReport) {
	k := &j.launchers[rank]
	k.called = true
	if r == nil {
		return
	}
	k.report = r
	k.noteProfileCost(r)
	if profile := r.Profile; profile != nil && !proto.Equal(profile, k.profile) {
		k.profile = profile // the profile holds until the launcher sends another one
	}
}

// Delivered records that mini-batches were acknowledged.
func (j *Job) Delivered(miniBatches uint64) { j.rows += float64(miniBatches) * float64(j.BatchRows) }

// PoolWorkers counts the workers of any reach that the job wants from a pool of workers that are started when they are
// needed. It wants none while no rank is attached, and none if they could not read what is left.
func (j *Job) PoolWorkers(running bool) int {
	switch {
	case j.Makers&ledger.NoAny != 0 || !j.attended || !j.readable:
		return 0
	case !running:
		return j.leastWorkers
	}
	return max(j.wantedWorkers, j.leastWorkers)
}
