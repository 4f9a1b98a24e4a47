package dataset

import (
	"errors"
	"fmt"
	"slices"
	"sort"
)

// ErrOtherJob says that a token is of another job.
var ErrOtherJob = errors.New("dataset: the token is of another job")

// Progress counts the acknowledged mini-batches of one epoch: all below the mark, and ranges above it. It has one
// owner.
type Progress struct {
	job      Digest
	epoch    uint64
	total    uint64
	mark     uint64  // all numbers below were acknowledged, this number was not
	ranges   []Range // acknowledged numbers above the mark
	inRanges uint64  // how many numbers the ranges hold
}

// NewProgress starts an epoch of total mini-batches with none acknowledged.
func NewProgress(job Digest, epoch, total uint64) *Progress {
	return &Progress{job: job, epoch: epoch, total: total}
}

// Resume goes on where a token left off. job and total are those of the present plan. It refuses a token of another job
// with ErrOtherJob, and a token that acknowledges a number of total or above with ErrToken.
func Resume(t Token, job Digest, total uint64) (*Progress, error) {
	if t.Job != job {
		return nil, fmt.Errorf("%w: it is of %v, this is %v: "+
			"resume with the data, pipeline and options it was made with",
			ErrOtherJob, t.Job, job)
	}
	if err := t.validate(); err != nil {
		return nil, err
	}
	end := t.Mark
	if n := len(t.Ranges); n > 0 {
		end = t.Ranges[n-1].To
	}
	if end > total {
		return nil, fmt.Errorf("%w: it acknowledges mini-batch %d of %d", ErrToken, end-1, total)
	}
	p := NewProgress(job, t.Epoch, total)
	p.mark = t.Mark
	p.ranges = append([]Range(nil), t.Ranges...)
	for _, r := range t.Ranges {
		p.inRanges += r.To - r.From
	}
	return p, nil
}

// Ack acknowledges a mini-batch. Acknowledging it again changes nothing. The error wraps ErrNumber.
func (p *Progress) Ack(number uint64) error {
	if number >= p.total {
		return fmt.Errorf("%w: acknowledge mini-batch %d of %d", ErrNumber, number, p.total)
	}
	switch {
	case p.Acked(number):
	case number == p.mark:
		p.mark++
		if len(p.ranges) > 0 && p.ranges[0].From == p.mark {
			p.mark = p.ranges[0].To
			p.inRanges -= p.ranges[0].To - p.ranges[0].From
			p.ranges = slices.Delete(p.ranges, 0, 1)
		}
	default:
		p.inRanges++
		p.ranges = InsertNumber(p.ranges, number)
	}
	return nil
}

// Acked reports whether a mini-batch was acknowledged.
func (p *Progress) Acked(number uint64) bool {
	if number < p.mark {
		return true
	}
	i := sort.Search(len(p.ranges), func(i int) bool { return p.ranges[i].To > number })
	return i < len(p.ranges) && p.ranges[i].From <= number
}

// Pending returns the least number, from or above, that was not acknowledged. ok is false if there is none.
func (p *Progress) Pending(from uint64) (number uint64, ok bool) {
	from = max(from, p.mark)
	i := sort.Search(len(p.ranges), func(i int) bool { return p.ranges[i].To > from })
	if i < len(p.ranges) && p.ranges[i].From <= from {
		from = p.ranges[i].To // the range after it does not touch it
	}
	return from, from < p.total
}

// Mark returns the least number that was not acknowledged, or the total once all were.
func (p *Progress) Mark() uint64 { return p.mark }

// Count returns how many mini-batches were acknowledged.
func (p *Progress) Count() uint64 { return p.mark + p.inRanges }

// Total returns how many mini-batches the epoch has.
func (p *Progress) Total() uint64 { return p.total }

// Job returns the digest of the job that the mini-batches are of. It never changes.
func (p *Progress) Job() Digest { return p.job }

// Epoch returns the epoch's number, counted from 0.
func (p *Progress) Epoch() uint64 { return p.epoch }

// Done reports whether all mini-batches were acknowledged.
func (p *Progress) Done() bool { return p.mark == p.total }

// Token returns the checkpoint of this moment. It shares no memory with the Progress.
func (p *Progress) Token() Token {
	return Token{Job: p.job, Epoch: p.epoch, Mark: p.mark, Ranges: append([]Range(nil), p.ranges...)}
}
