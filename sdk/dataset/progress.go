package dataset

import (
	"errors"
	"fmt"
	"sort"
)

// ErrOtherJob says that a token is of another job.
var ErrOtherJob = errors.New("dataset: the token is of another job")

// Run is the acknowledged numbers [From, To).
type Run struct{ From, To uint64 }

// Progress counts the acknowledged mini-batches of one epoch: all below the mark, and runs above it. It has one owner.
type Progress struct {
	job    Digest
	epoch  uint64
	total  uint64
	mark   uint64
	runs   []Run // above the mark, ascending, neither empty nor touching
	inRuns uint64
}

// NewProgress starts an epoch of total mini-batches with none acknowledged.
func NewProgress(job Digest, epoch, total uint64) *Progress {
	return &Progress{job: job, epoch: epoch, total: total}
}

// Resume goes on where a token left off. job and total are what the plan says now: a token of another job is refused
// with ErrOtherJob, one that passes total with ErrToken.
func Resume(t Token, job Digest, total uint64) (*Progress, error) {
	if t.Job != job {
		return nil, fmt.Errorf("%w: it is of %v, this is %v: resume with the data, pipeline and options it was made with", ErrOtherJob, t.Job, job)
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	last := t.Mark
	if n := len(t.Runs); n > 0 {
		last = t.Runs[n-1].To
	}
	if last > total {
		return nil, fmt.Errorf("%w: it acknowledges mini-batch %d of %d", ErrToken, last-1, total)
	}
	p := NewProgress(job, t.Epoch, total)
	p.mark = t.Mark
	p.runs = append(p.runs, t.Runs...)
	for _, r := range t.Runs {
		p.inRuns += r.To - r.From
	}
	return p, nil
}

// Ack acknowledges a mini-batch. Acknowledging it again changes nothing. The error wraps ErrNumber.
func (p *Progress) Ack(number uint64) error {
	if number >= p.total {
		return fmt.Errorf("%w: acknowledge mini-batch %d of %d", ErrNumber, number, p.total)
	}
	if p.Acked(number) {
		return nil
	}
	if number == p.mark {
		p.mark++
		if len(p.runs) > 0 && p.runs[0].From == p.mark {
			p.mark = p.runs[0].To
			p.inRuns -= p.runs[0].To - p.runs[0].From
			p.runs = append(p.runs[:0], p.runs[1:]...)
		}
		return nil
	}
	p.inRuns++
	i := sort.Search(len(p.runs), func(i int) bool { return p.runs[i].From > number })
	left := i > 0 && p.runs[i-1].To == number
	right := i < len(p.runs) && p.runs[i].From == number+1
	switch {
	case left && right:
		p.runs[i-1].To = p.runs[i].To
		p.runs = append(p.runs[:i], p.runs[i+1:]...)
	case left:
		p.runs[i-1].To++
	case right:
		p.runs[i].From--
	default:
		p.runs = append(p.runs, Run{})
		copy(p.runs[i+1:], p.runs[i:])
		p.runs[i] = Run{number, number + 1}
	}
	return nil
}

// Acked reports whether a mini-batch was acknowledged.
func (p *Progress) Acked(number uint64) bool {
	if number < p.mark {
		return true
	}
	i := sort.Search(len(p.runs), func(i int) bool { return p.runs[i].To > number })
	return i < len(p.runs) && p.runs[i].From <= number
}

// Pending returns the least number, from or above, that was not acknowledged; false if there is none.
func (p *Progress) Pending(from uint64) (uint64, bool) {
	from = max(from, p.mark)
	i := sort.Search(len(p.runs), func(i int) bool { return p.runs[i].To > from })
	if i < len(p.runs) && p.runs[i].From <= from {
		from = p.runs[i].To // the next run does not touch this one
	}
	return from, from < p.total
}

// Mark returns the least number that was not acknowledged; it is the total once all were.
func (p *Progress) Mark() uint64 { return p.mark }

// Count returns how many mini-batches were acknowledged.
func (p *Progress) Count() uint64 { return p.mark + p.inRuns }

// Total returns how many mini-batches the epoch has.
func (p *Progress) Total() uint64 { return p.total }

// Epoch returns the epoch.
func (p *Progress) Epoch() uint64 { return p.epoch }

// Done reports whether all mini-batches were acknowledged.
func (p *Progress) Done() bool { return p.mark == p.total }

// Token returns the checkpoint of this moment. It shares nothing with the Progress.
func (p *Progress) Token() Token {
	return Token{Job: p.job, Epoch: p.epoch, Mark: p.mark, Runs: append([]Run(nil), p.runs...)}
}
