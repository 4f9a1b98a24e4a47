package steering

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/control/ledger"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/offload"
)

// CheckReport refuses a launcher's report whose numbers can never be right. The error wraps ledger.ErrArgument.
func CheckReport(r *apiv1.RankReport) error {
	switch r.GetProfiling() {
	case "", apiv1.SideOwn, apiv1.SideOthers:
	default:
		return fmt.Errorf("%w: profiling %.20q: want %s, %s or nothing", ledger.ErrArgument, r.GetProfiling(),
			apiv1.SideOwn, apiv1.SideOthers)
	}
	switch r.GetProfileFrom() {
	case "", apiv1.ProfileMeasured, apiv1.ProfileStored:
	default:
		return fmt.Errorf("%w: profile from %.20q: want %s, %s or nothing", ledger.ErrArgument, r.GetProfileFrom(),
			apiv1.ProfileMeasured, apiv1.ProfileStored)
	}
	for _, seconds := range []float64{r.GetProfileSeconds(), r.GetTrainingSeconds()} {
		if !(seconds >= 0) || math.IsInf(seconds, 1) {
			return fmt.Errorf("%w: a profile or a training of %v s", ledger.ErrArgument, seconds)
		}
	}
	p := r.GetProfile()
	if p == nil {
		return nil
	}
	_, err := offload.Decide(offload.Extended, *metricsOfProfile(p, 0, 1))
	if err != nil {
		return fmt.Errorf("%w: %w", ledger.ErrArgument, err)
	}
	return nil
}

// profileCost is what a launcher reports of the time that its profile took.
type profileCost struct {
	from     string // a word of RankReport.profile_from; empty: nothing was measured yet
	seconds  float64
	training float64 // seconds since the launcher attached first; 0: the launcher does not measure
}

// noteProfileCost keeps the time that a profile took, if a report contains it.
func (k *launcher) noteProfileCost(r *apiv1.RankReport) {
	if r.TrainingSeconds > 0 {
		k.profileCost = profileCost{from: r.ProfileFrom, seconds: r.ProfileSeconds, training: r.TrainingSeconds}
	}
}

// share returns the share of the training time that the profile took, 0 to 1.
func (p profileCost) share() float64 {
	if p.training <= 0 {
		return 0
	}
	return min(p.seconds/p.training, 1)
}

// StallSeconds returns how long a rank's trainer has waited for mini-batches, over all its sessions.
func (j *Job) StallSeconds(rank uint32) float64 {
	k := &j.launchers[rank]
	return k.stalledSeconds + k.report.GetStallSeconds()
}

// QueueBatches returns how many mini-batches wait in a rank's input queue. It reports false if the rank's session has
// reported nothing.
func (j *Job) QueueBatches(rank uint32) (batches float64, reported bool) {
	r := j.launchers[rank].report
	return r.GetQueueBatches(), r != nil
}

// Describe sets what the status of a rank says of its launcher's reports and of its share.
func (j *Job) Describe(s *apiv1.RankStatus) {
	k := &j.launchers[s.Rank]
	s.StallSeconds = j.StallSeconds(s.Rank)
	s.QueueBatches, s.TRowsPerSecond = k.report.GetQueueBatches(), k.report.GetTRowsPerSecond()
	s.ProfileFrom, s.ProfileSeconds, s.ProfileShare = k.profileCost.from, k.profileCost.seconds, k.profileCost.share()
	switch {
	case k.division != nil:
		s.Offload = k.division.why
	case j.Offload.Fixed && s.OwnWorkers > 0:
		s.Offload = "the job fixes the share"
	}
}
