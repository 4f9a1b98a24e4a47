package control

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/millrace/millrace/control/fleet"
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

// ownShare is the state of dividing the splits of one rank between the rank's own CPUs and all other workers. It
// is made when the rank's first own worker can be granted splits.
type ownShare struct {
	metrics  *offload.Metrics      // from which the decision was made; nil: no decision was made
	profile  *apiv1.OffloadMetrics // from which the metrics were made; nil: from T and P
	others   float64               // throughput of all other workers
	began    time.Time
	tuner    *offload.Tuner
	why      string
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

// endSession ends the counts of a launcher's session. The share, its tuner and the profile stay if the next session is
// of the same run: a launcher in Python has a session for each epoch. leader.mu is held.
func (k *launcher) endSession(sameRun bool) {
	if k.ownShare != nil {
		k.ownShare.former = k.ownShare.former.plus(k.progress)
	}
	if !sameRun {
		k.ownShare, k.profile, k.profileCost = nil, nil, profileCost{}
	}
	k.stalledSeconds, k.progress, k.called = k.stalledSeconds+k.progress.GetStallSeconds(), nil, false
}

// shareSplits decides for each rank which share of the rank's splits the rank's own CPUs make. l.mu is held.
func (c *conductor) shareSplits(v *ledger.JobStatus, now time.Time) {
	if !c.job.offload.Shares || c.job.offload.Fixed {
		return
	}
	for _, r := range v.Ranks {
		k := &c.job.launchers[r.Rank]
		switch {
		case r.Attached && r.Own > 0:
			if k.ownShare == nil {
				k.ownShare = &ownShare{began: now}
			}
			c.shareOfRank(k, r.Rank, now)
		case k.ownShare != nil:
			k.ownShare = nil
			c.setShare(r.Rank, -1, "the rank has no CPUs of its own among the workers", now)
		}
	}
	c.settle(now)
}

// setShare sets a rank's share in the ledger. l.mu is held.
func (c *conductor) setShare(rank uint32, share float64, why string, now time.Time) {
	c.logger.Info("share of the workers elsewhere", "job", c.job.ID, "rank", rank, "ratio", share, "why", why)
	if err := c.machine.Ledger.ShareSplits(c.job.ID, rank, share, now); err != nil {
		c.logger.Error("share splits", "job", c.job.ID, "rank", rank, "error", err)
	}
}

// giveToMeasured gives every split of a rank to the side that its launcher measures, and reports whether the launcher
// measures a side. When the launcher has finished, a policy decides again. l.mu is held.
func (c *conductor) giveToMeasured(k *launcher, rank uint32, now time.Time) bool {
	s, side := k.ownShare, k.progress.GetProfiling()
	switch {
	case k.progress == nil:
		side = s.measured // the next session has not reported yet
	case k.profile != nil:
		side = "" // a launcher sends its profile when it has finished: this report was overtaken
	}
	if side == s.measured {
		return side != ""
	}
	s.measured, s.metrics = side, nil
	switch side {
	case apiv1.SideOwn:
		s.why = "the launcher measures the rank's own CPUs"
		c.setShare(rank, 0, s.why, now)
	case apiv1.SideOthers:
		s.why = "the launcher measures the other workers"
		c.setShare(rank, 1, s.why, now)
	}
	return side != ""
}

// reviewShares decides the shares of all ranks now: a rank has attached, or its own worker has come. l.mu is held.
func (c *conductor) reviewShares(now time.Time) {
	if v, err := c.machine.Ledger.Status(c.job.ID, now); err == nil {
		c.shareSplits(&v, now)
	}
}

// shareOfRank decides a rank's share, or tunes it. l.mu is held.
func (c *conductor) shareOfRank(k *launcher, rank uint32, now time.Time) {
	s := k.ownShare
	if c.giveToMeasured(k, rank, now) {
		return
	}
	m, others, guessed, err := c.offloadMetrics(k, rank)
	if err != nil {
		s.why = err.Error()
		return
	}
	if s.metrics == nil || k.profile != s.profile || changed(s.metrics.Supply, m.Supply) || changed(s.others, others) {
		d, err := offload.Decide(c.job.offload.Policy, *m)
		if err != nil { // checkReport has refused a profile that can never be right
			s.why = err.Error()
			return
		}
		if guessed {
			d.Why = byThreads + d.Why
		}
		s.metrics, s.profile, s.others, s.why = m, k.profile, others, d.Why
		s.tuner, s.began = offload.NewTuner(d.Ratio), now
		c.setShare(rank, d.Ratio, d.Why, now)
		return
	}
	r := k.progress
	if c.job.offload.Policy != offload.Extended || r.GetOwn() == nil && r.GetOthers() == nil {
		return // the other policies decide once, and some launchers do not count the sides
	}
	counts := s.former.plus(r)
	waiting := r.GetQueueBatches() * float64(c.job.Plan.Batch)
	record := s.tuner.Decide(offload.Inputs{
		Seconds: now.Sub(s.began).Seconds(), StallSeconds: counts.stall,
		TakenRows: math.Max(counts.ownRows+counts.othersRows-waiting, 0),
		EpochRows: c.job.epochRows() / float64(len(c.job.launchers)),
		LocalRows: counts.ownRows, RemoteRows: counts.othersRows,
		LocalBusy: counts.ownBusy, RemoteBusy: counts.othersBusy,
		LocalSupply: m.Supply, RemoteSupply: others,
		LocalThroughput: m.Lthp, RemoteThroughput: remoteThroughput(m), TrainerThroughput: r.GetTRowsPerSecond(),
		RemoteAway: others == 0,
	})
	if record.Decision.Changed {
		s.why = record.Decision.Why
		c.setShare(rank, record.Decision.Ratio, s.why, now)
	}
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

// offloadMetrics returns the metrics of a rank from its launcher's profile. If there is no profile, the metrics
// follow from T, from P of the rank's own CPUs, and from P of all other workers, of which each rank has an equal
// part. P of workers that were not measured is guessed. l.mu is held.
func (c *conductor) offloadMetrics(k *launcher, rank uint32) (m *offload.Metrics, others float64, guessed bool,
	err error) {
	rates := c.throughputs(rank)
	own, others := rates.own, rates.others
	t := k.progress.GetTRowsPerSecond()
	if all := c.job.State().T; t == 0 && all > 0 {
		t = all / float64(len(c.job.launchers))
	}
	if p := k.profile; p != nil {
		return metricsOfProfile(p, own, others), others, false, nil
	}
	if own == 0 {
		return nil, others, false, errRates
	}
	if t == 0 || rates.unknown {
		t = 2 * (own + others) // a trainer of unknown speed counts as faster than all workers
	}
	m = &offload.Metrics{Gthp: t, Lthp: min(t, own), Supply: own}
	if others > 0 {
		m.Candidates = []offload.Candidate{{Cut: offload.All, Rthp: min(t, others), Supply: others}}
	}
	return m, others, rates.guessed, nil
}

// metricsOfProfile turns a launcher's profile into metrics. A launcher does not measure the other workers if its
// trainer hardly waits for the rank's own CPUs: then P says what the other workers make.
func metricsOfProfile(p *apiv1.OffloadMetrics, own, others float64) *offload.Metrics {
	m := &offload.Metrics{Gthp: p.Gthp, Lthp: p.Lthp, Pcycle: p.Pcycle, Tcycle: p.Tcycle, Cores: p.Cores, Supply: own}
	if others > 0 {
		rthp := p.Rthp
		if rthp == 0 {
			rthp = min(p.Gthp, others)
		}
		m.Candidates = []offload.Candidate{{Cut: offload.All, Rthp: rthp, Ocycle: p.Ocycle, Supply: others}}
	}
	return m
}

// rates are the throughputs of the two sides of a rank.
type rates struct {
	own, others float64
	guessed     bool // P of a worker of the rank's own is not known
	unknown     bool // P of no worker is known: own and others say which part of the threads each side has
}

// sideRate is the throughput of a side: the sum of the known P, and the threads of the workers whose P is not known.
type sideRate struct{ known, unmeasured float64 }

// throughputs returns the sum of P of the workers that serve a rank alone, and the rank's part of the sum of P of all
// other workers that may make its splits. A worker whose P is not known counts with the mean of a thread whose P is
// known. l.mu is held.
func (c *conductor) throughputs(rank uint32) rates {
	p := c.job.State().P
	g := c.job.latest()
	if g == nil {
		return rates{}
	}
	var own, others sideRate
	known, threads := 0.0, 0.0
	count := func(side *sideRate, at fleet.DriveID) {
		n := float64(max(c.driveAt(at).GetThreads(), 1))
		if rows := p[driveName(at)]; rows > 0 {
			side.known, known, threads = side.known+rows, known+rows, threads+n
		} else {
			side.unmeasured += n
		}
	}
	seen := map[fleet.DriveID]bool{}
	for _, holders := range g.holders(c.fleet) {
		for _, h := range holders {
			if !seen[h] && c.employs(c.job, h) {
				seen[h] = true
				count(&others, h)
			}
		}
	}
	for _, w := range c.workersFor() {
		switch serves := c.servedRank(w); {
		case serves == nil && c.job.allowedWorkers != 0:
			count(&others, w)
		case serves != nil && serves.Rank == rank:
			count(&own, w)
		}
	}
	perThread := 1.0
	if threads > 0 {
		perThread = known / threads
	}
	return rates{
		own: own.known + own.unmeasured*perThread, guessed: own.unmeasured > 0, unknown: threads == 0,
		others: (others.known + others.unmeasured*perThread) / float64(len(c.job.launchers)),
	}
}

// servedRank returns the only rank that a worker makes splits for. It returns nil if the worker serves every rank.
// l.mu is held.
func (l *leader) servedRank(at fleet.DriveID) *apiv1.RankName {
	return l.driveAt(at).GetServes()
}

// profileCost is what a launcher reports of the time that its profile took.
type profileCost struct {
	from     string // a word of RankReport.profile_from; empty: nothing was measured yet
	seconds  float64
	training float64 // seconds since the launcher attached first; 0: the launcher does not measure
}

// noteProfileCost keeps the time that a profile took, if a report contains it. leader.mu is held.
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

// checkReport refuses a launcher's report whose numbers can never be right.
func checkReport(r *apiv1.RankReport) error {
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
