package steering

import (
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/offload"
)

// offloadMetrics returns the metrics of a rank from its launcher's profile. If there is no profile, the metrics
// follow from T, from P of the rank's own CPUs, and from P of all other workers, of which each rank has an equal
// part. P of workers that were not measured is guessed.
func (j *Job) offloadMetrics(v *View, k *launcher, rank uint32) (m *offload.Metrics, others float64, guessed bool,
	err error) {
	rates := j.throughputs(v, rank)
	own, others := rates.own, rates.others
	t := k.report.GetTRowsPerSecond()
	if t == 0 && v.T > 0 {
		t = v.T / float64(len(j.launchers))
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

// sideRates are the throughputs of the two sides of a rank.
type sideRates struct {
	own, others float64
	guessed     bool // P of a worker of the rank's own is not known
	unknown     bool // P of no worker is known: own and others say which part of the threads each side has
}

// sideRate is the throughput of a side: the sum of the known P, and the threads of the workers whose P is not known.
type sideRate struct{ known, unmeasured float64 }

// throughputs returns the sum of P of the workers that serve a rank alone, and the rank's part of the sum of P of all
// other workers that may make its splits. A worker whose P is not known counts with the mean of a thread whose P is
// known.
func (j *Job) throughputs(v *View, rank uint32) sideRates {
	var own, others sideRate
	known, threads := 0.0, 0.0
	count := func(side *sideRate, w *Worker) {
		n := float64(max(w.Drive.GetThreads(), 1))
		if rows := v.P[w.Name()]; rows > 0 {
			side.known, known, threads = side.known+rows, known+rows, threads+n
		} else {
			side.unmeasured += n
		}
	}
	for i := range v.Holders {
		count(&others, &v.Holders[i])
	}
	for i := range v.Workers {
		w := &v.Workers[i]
		switch serves := w.Drive.GetServes(); {
		case serves == nil && j.allowedWorkers != 0:
			count(&others, w)
		case serves != nil && serves.Rank == rank:
			count(&own, w)
		}
	}
	perThread := 1.0
	if threads > 0 {
		perThread = known / threads
	}
	return sideRates{
		own: own.known + own.unmeasured*perThread, guessed: own.unmeasured > 0, unknown: threads == 0,
		others: (others.known + others.unmeasured*perThread) / float64(len(j.launchers)),
	}
}
