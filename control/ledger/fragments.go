package ledger

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/sdk/dataset"
)

// amount counts fragments, and the mini-batches that begin with one of them.
type amount struct{ fragments, miniBatches uint64 }

// gain counts fragments of a split's portion that became delivered: those of after that are not in before. It returns
// how many these are.
func (a *amount) gain(s dataset.Split, before, after numberset.Runs) uint64 {
	fresh := after.Count(s.FirstFragment, s.End()) - before.Count(s.FirstFragment, s.End())
	a.fragments += fresh
	a.miniBatches += fresh
	first := s.FirstFragment
	if s.Before > 0 && after.Covers(first, first+1) && !before.Covers(first, first+1) {
		a.miniBatches-- // It began in a split before this one.
	}
	return fresh
}

// fragmentsOf returns the fragments of mini-batches.
func (e *epoch) fragmentsOf(miniBatches numberset.Runs) numberset.Runs {
	return miniBatches.Convert(e.plan.FragmentsOf)
}

// miniBatchesOf returns the mini-batches of which a set has all fragments.
func (e *epoch) miniBatchesOf(fragments numberset.Runs) numberset.Runs {
	return fragments.Convert(e.plan.MiniBatchesOf)
}

// EndRestore ends the restore of a job, whose records were all restored. The fragments of one mini-batch can be in the
// records of two chunks, and the last leader may have died when it had written one of them. Such a mini-batch was
// acknowledged, and the acknowledgement was not answered: it is delivered again, with all its fragments. The error
// wraps ErrUnknown.
func (l *Ledger) EndRestore(id string) error {
	j, err := l.findJob(id)
	if err != nil {
		return fmt.Errorf("end the restore: %w", err)
	}
	for _, e := range j.epochs {
		for i := range e.shares {
			has := e.deliveredIn(nil, &e.shares[i])
			if whole := e.fragmentsOf(e.miniBatchesOf(has)); !slices.Equal(whole, has) {
				e.rewind(&e.shares[i], whole)
			}
		}
	}
	return nil
}
