package dataset

import "fmt"

// Share is a rank's part of every epoch. The zero Share is the whole epoch.
type Share struct {
	Rank  int // from 0
	Ranks int // that share the epoch; 0 means 1
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
