package remote

import (
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// paceWindow is the time over which a Pace averages: acknowledgements come in groups, and even out over it.
const paceWindow = 30 * time.Second

// Pace estimates how fast a job is from its statuses, as [Client.Watch] yields them. The zero value has seen no status.
// It is pure and has one user.
type Pace struct {
	samples []paceSample // the first is at most one status older than paceWindow
}

type paceSample struct {
	at   time.Time
	rows float64 // acknowledged since the job began, over all epochs
}

// Observe takes the job's status at a time.
func (p *Pace) Observe(at time.Time, s *apiv1.JobStatus) {
	sample := paceSample{at: at, rows: float64(s.GetEpoch()) * float64(s.GetRows())}
	if s.GetMinibatches() > 0 {
		sample.rows += float64(s.GetRows()) * float64(s.GetDelivered()) / float64(s.GetMinibatches())
	}
	if n := len(p.samples); n > 0 && sample.rows < p.samples[n-1].rows {
		p.samples = nil // a rank went back to its token
	}
	p.samples = append(p.samples, sample)
	for len(p.samples) > 2 && at.Sub(p.samples[1].at) >= paceWindow {
		p.samples = p.samples[1:]
	}
}

// RowsPerSecond returns how many rows the ranks have acknowledged each second lately. ok is false before Pace has seen
// two statuses that are far enough apart.
func (p *Pace) RowsPerSecond() (rowsPerSecond float64, ok bool) {
	if len(p.samples) < 2 {
		return 0, false
	}
	first, last := p.samples[0], p.samples[len(p.samples)-1]
	seconds := last.at.Sub(first.at).Seconds()
	if seconds < 0.5 {
		return 0, false
	}
	return (last.rows - first.rows) / seconds, true
}

// Remaining estimates how long the job still takes at its present pace. ok is false before the pace is known, while the
// job makes no progress, and for a job that follows partitions that are still to come.
func (p *Pace) Remaining(s *apiv1.JobStatus) (remaining time.Duration, ok bool) {
	rate, ok := p.RowsPerSecond()
	if !ok || rate <= 0 || s.GetSpec().GetFollow() || s.GetRows() <= 0 {
		return 0, false
	}
	left := float64(max(s.GetSpec().GetEpochs(), 1))*float64(s.GetRows()) - p.samples[len(p.samples)-1].rows
	seconds := max(left, 0) / rate
	if seconds > (100 * 365 * 24 * time.Hour).Seconds() {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second), true
}
