package steering

import (
	"errors"
	"math"
	"time"

	"github.com/millrace/millrace/control/ledger"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/offload"
)

// redecideAt is the relative change of a side's throughput at which a policy decides again: a worker has come or
// gone, or P has become known.
const redecideAt = 0.2

// errRates is the reason while the throughputs that a policy needs are not known.
var errRates = errors.New("no P of the rank's own CPUs is known yet")

// byThreads comes before the reason of a share while P of the rank's own CPUs is not known, because the launcher
// measures, or because the job is too short to measure P.
const byThreads = "P of the rank's own CPUs is guessed by their threads: "

// Undivided is the ratio of a rank whose splits are not divided.
const Undivided = -1

// Share is the share of a rank's splits that all workers but the rank's own CPUs make.
type Share struct {
	Rank  uint32
	Ratio float64 // 0 to 1, or Undivided
	Why   string
}

// division is the state of dividing the splits of one rank between the rank's own CPUs and all other workers. It
// is made when the rank's first own worker can be granted splits.
type division struct {
	metrics *offload.Metrics      // from which the decision was made; nil: no decision was made
	profile *apiv1.OffloadMetrics // from which the metrics were made; nil: from T and P
	others  float64               // throughput of all other workers
	guessed bool                  // P of a worker of the rank's own was guessed for the decision
	why     string

	tuner    *offload.Tuner
	seconds  float64    // seconds of the tuner's clock, which stands still while the rank is detached
	reviewed time.Time  // the last review, if the rank was attached then
	measured string     // the side that makes every split because the launcher measures it; empty: none
	former   sideCounts // former is the sum of sessions of the same run that ended.
}

// sideCounts are the sums of a launcher's counts over sessions.
type sideCounts struct {
	stall, ownRows, ownBusy, othersRows, othersBusy float64
}

// plus returns the counts with those of a session's last report.
func (s sideCounts) plus(r *apiv1.RankReport) sideCounts {
	return sideCounts{
		stall:   s.stall + r.GetStallSeconds(),
		ownRows: s.ownRows + r.GetOwn().GetRows(), ownBusy: s.ownBusy + r.GetOwn().GetBusySeconds(),
		othersRows: s.othersRows + r.GetOthers().GetRows(), othersBusy: s.othersBusy + r.GetOthers().GetBusySeconds(),
	}
}

// Divides reports whether a policy divides the splits of the job's ranks.
func (t *Terms) Divides() bool { return t.Offload.Shares && !t.Offload.Fixed }

// ReviewShares decides the shares of all ranks now: a rank has attached, or its own worker has come.
func (j *Job) ReviewShares(v View) []Share { return j.shareSplits(&v) }

// shareSplits decides for each rank which share of the rank's splits the rank's own CPUs make. A rank that is detached
// keeps its share, which the next session of its run goes on with.
func (j *Job) shareSplits(v *View) (shares []Share) {
	if !j.Divides() {
		return nil
	}
	for i := range v.Status.Ranks {
		r := &v.Status.Ranks[i]
		k := &j.launchers[r.Rank]
		switch {
		case r.Own == 0:
			k.division = nil
			if r.Share >= 0 {
				shares = append(shares, Share{r.Rank, Undivided, "the rank has no CPUs of its own among the workers"})
			}
		case r.Attached:
			if k.division == nil {
				k.division = &division{}
			}
			k.division.passTime(v.Now)
			if s, changes := j.shareOfRank(v, k, r); changes {
				shares = append(shares, s)
			}
		case k.division != nil:
			k.division.reviewed = time.Time{}
		}
	}
	return shares
}

// passTime passes the time of a review of an attached rank to the tuner's clock.
func (s *division) passTime(now time.Time) {
	if !s.reviewed.IsZero() {
		s.seconds += max(now.Sub(s.reviewed).Seconds(), 0)
	}
	s.reviewed = now
}

// shareOfRank decides a rank's share, or tunes it. It reports whether the share changes.
func (j *Job) shareOfRank(v *View, k *launcher, r *ledger.RankStatus) (share Share, changes bool) {
	s := k.division
	if measures, share, changes := k.giveToMeasured(r); measures {
		return share, changes
	}
	m, others, guessed, err := j.offloadMetrics(v, k, r.Rank)
	if err != nil {
		s.why = err.Error()
		return Share{}, false
	}
	if s.metrics == nil || k.profile != s.profile || s.guessed && !guessed || changed(s.metrics.Supply, m.Supply) ||
		changed(s.others, others) {
		d, err := offload.Decide(j.Offload.Policy, *m)
		if err != nil { // CheckReport has refused a profile that can never be right
			s.why = err.Error()
			return Share{}, false
		}
		if guessed {
			d.Why = byThreads + d.Why
		}
		s.metrics, s.profile, s.others, s.guessed, s.why = m, k.profile, others, guessed, d.Why
		s.tuner, s.seconds = offload.NewTuner(d.Ratio), 0
		return Share{r.Rank, d.Ratio, d.Why}, true
	}
	return j.tune(v, k, r.Rank)
}

// giveToMeasured gives every split of a rank to the side that its launcher measures, and reports whether the launcher
// measures a side. When the launcher has finished, a policy decides again.
func (k *launcher) giveToMeasured(r *ledger.RankStatus) (measures bool, share Share, changes bool) {
	s, side := k.division, k.report.GetProfiling()
	switch {
	case k.report == nil:
		side = s.measured // the next session has not reported yet
	case k.profile != nil:
		side = "" // a launcher sends its profile when it has finished: this report was overtaken
	}
	if side == s.measured {
		return side != "", Share{}, false
	}
	s.measured, s.metrics = side, nil
	switch side {
	case apiv1.SideOwn:
		s.why = "the launcher measures the rank's own CPUs"
		return true, Share{r.Rank, 0, s.why}, true
	case apiv1.SideOthers:
		s.why = "the launcher measures the other workers"
		return true, Share{r.Rank, 1, s.why}, true
	}
	return false, Share{}, false
}

// tune lets the tuner of a rank change the share by the rows that both sides have made.
func (j *Job) tune(v *View, k *launcher, rank uint32) (share Share, changes bool) {
	s, r := k.division, k.report
	if j.Offload.Policy != offload.Extended || r.GetOwn() == nil && r.GetOthers() == nil {
		return Share{}, false // the other policies decide once, and some launchers do not count the sides
	}
	counts := s.former.plus(r)
	waiting := r.GetQueueBatches() * float64(j.BatchRows)
	record := s.tuner.Decide(offload.Inputs{
		Seconds: s.seconds, StallSeconds: counts.stall,
		TakenRows: math.Max(counts.ownRows+counts.othersRows-waiting, 0),
		EpochRows: v.EpochRows / float64(len(j.launchers)),
		LocalRows: counts.ownRows, RemoteRows: counts.othersRows,
		LocalBusy: counts.ownBusy, RemoteBusy: counts.othersBusy,
		LocalSupply: s.metrics.Supply, RemoteSupply: s.others,
		LocalThroughput: s.metrics.Lthp, RemoteThroughput: remoteThroughput(s.metrics),
		TrainerThroughput: r.GetTRowsPerSecond(), RemoteAway: s.others == 0,
	})
	if !record.Decision.Changed {
		return Share{}, false
	}
	s.why = record.Decision.Why
	return Share{rank, record.Decision.Ratio, s.why}, true
}

// changed reports whether a throughput differs enough to decide again.
func changed(before, after float64) bool { return math.Abs(after-before) > redecideAt*before }

// remoteThroughput returns Rthp of metrics with at most one candidate; 0: there is no candidate.
func remoteThroughput(m *offload.Metrics) float64 {
	if len(m.Candidates) == 0 {
		return 0
	}
	return m.Candidates[0].Rthp
}
