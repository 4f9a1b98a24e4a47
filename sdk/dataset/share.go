package dataset

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/internal/quantity"
)

// ErrAllLeftOut says that a plan leaves every row out, or that no rank gets a mini-batch.
var ErrAllLeftOut = errors.New("no mini-batch is left")

// Share is a rank's part of every epoch. The zero Share is the whole epoch.
type Share struct {
	Rank  int // from 0
	Ranks int // How many ranks share the epoch; 0 means 1.
	// KeepTail gives the first ranks one mini-batch more where the mini-batches cannot be divided evenly. Without it
	// every rank gets the same number, and at most Ranks-1 mini-batches at the end belong to no rank.
	KeepTail bool
}

// Check returns an error that wraps ErrOptions if there is no such rank.
func (s Share) Check() error {
	if s.Ranks < 0 || s.Rank < 0 || s.Rank >= max(s.Ranks, 1) {
		return fmt.Errorf("%w: rank %d of %d: ranks count from 0", ErrOptions, s.Rank, max(s.Ranks, 1))
	}
	return nil
}

// LeftOut returns how many rows of an epoch no rank gets: those of dropped tails, and those of mini-batches at the end
// that cannot be shared out equally. The error wraps ErrAllLeftOut if there are rows and all of them are left out.
func (s Share) LeftOut(p *Plan) (int64, error) {
	total, ranks := p.MiniBatches(), uint64(max(s.Ranks, 1))
	rows := p.leftOut
	if !s.KeepTail {
		rows += p.rowsFrom(total - total%ranks)
	}
	switch {
	case rows == 0 || total >= ranks || s.KeepTail && total > 0:
		return rows, nil
	case total > 0:
		return rows, fmt.Errorf("%w: %s cannot be shared out equally to %d ranks, and the rank tail drop leaves all "+
			"rows out: use the rank tail keep, fewer ranks or a smaller batch", ErrAllLeftOut,
			quantity.Of(total, "mini-batch"), ranks)
	}
	what, whole := fmt.Sprintf("no partition (of %d) has", len(p.partitions)), int64(0)
	for _, n := range p.partitions {
		whole = max(whole, n)
	}
	if p.options.Boundary == BoundaryNone {
		what, whole = "the data set lacks", rows
	}
	return rows, fmt.Errorf("%w: the tail drop leaves out all %s, since %s the %s of a mini-batch: use the tail keep, "+
		"or a batch of at most %s", ErrAllLeftOut, quantity.Of(rows, "row"), what,
		quantity.Of(p.options.Batch, "row"), quantity.Of(whole, "row"))
}

// Numbers returns the share of an epoch that has total mini-batches: consecutive numbers, as a control plane deals them
// to the ranks of a job that resumes nothing.
func (s Share) Numbers(total uint64) Range {
	ranks, rank := uint64(max(s.Ranks, 1)), uint64(s.Rank)
	each, more := total/ranks, total%ranks
	if !s.KeepTail {
		more = 0
	}
	from := rank*each + min(rank, more)
	to := from + each
	if rank < more {
		to++
	}
	return Range{From: from, To: to}
}
