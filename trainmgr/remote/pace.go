package remote

import (
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// paceWindow is how far back a Pace looks: long enough for acknowledgements, which come in groups, to even out.
const paceWindow = 30 * time.Second

// Pace tells how fast a job is from its statuses, one after the other as [Client.Watch] yields them. The zero value has
// seen none. It is pure and has one user.
type Pace struct {
	seen []paceSample
}

type paceSample struct {
	at   time.Time
	rows float64 // acknowledged since the job began, over all epochs
}

// Observe takes a status that was true at a time.
func (p *Pace) Observe(at time.Time, s *apiv1.JobStatus) {
	sample := paceSample{at: at, rows: float64(s.GetEpoch()) * float64(s.GetRows())}
	if s.GetMinibatches() > 0 {
		sample.rows += float64(s.GetRows()) * float64(s.GetDelivered()) / float64(s.GetMinibatches())
	}
	if n := len(p.seen); n > 0 && sample.rows < p.seen[n-1].rows {
		p.seen = nil // a rank went back to its token
	}
	p.seen = append(p.seen, sample)
	for len(p.seen) > 2 && at.Sub(p.seen[1].at) >= paceWindow {
		p.seen = p.seen[1:]
	}
}

// RowsPerSecond returns the rows a second acknowledged lately, and reports whether two statuses far enough apart tell.
func (p *Pace) RowsPerSecond() (float64, bool) {
	if len(p.seen) < 2 {
		return 0, false
	}
	first, last := p.seen[0], p.seen[len(p.seen)-1]
	seconds := last.at.Sub(first.at).Seconds()
	if seconds < 0.5 {
		return 0, false
	}
	return (last.rows - first.rows) / seconds, true
}

// Remaining returns how long the job takes at its present pace, and reports whether that can be told: not before the
// pace is known, not while nothing moves, and not for a job that follows partitions that are still to come.
func (p *Pace) Remaining(s *apiv1.JobStatus) (time.Duration, bool) {
	rate, ok := p.RowsPerSecond()
	if !ok || rate <= 0 || s.GetSpec().GetFollow() || s.GetRows() <= 0 {
		return 0, false
	}
	left := float64(max(s.GetSpec().GetEpochs(), 1))*float64(s.GetRows()) - p.seen[len(p.seen)-1].rows
	seconds := max(left, 0) / rate
	if seconds > (100 * 365 * 24 * time.Hour).Seconds() {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second), true
}
