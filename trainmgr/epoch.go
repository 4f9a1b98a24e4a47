package trainmgr

import "github.com/millrace/millrace/sdk/dataset"

// Epoch is one epoch of a job, as one consumer sees it.
type Epoch struct {
	Number uint64
	Plan   *dataset.Plan // The plan covers the whole epoch.
	// Owned are the numbers of the mini-batches that this consumer gets; nil means all.
	Owned []dataset.Range
	// LeftOutRows are the rows of the epoch's data that no rank gets, as Share.LeftOut returns them.
	LeftOutRows int64
	// Progress counts the mini-batches that were acknowledged before. The Job changes it from then on.
	Progress *dataset.Progress
}

// settled returns a new Progress in which every mini-batch that need not come counts as acknowledged: the
// mini-batches that were acknowledged, and those that the consumer does not own.
func (e *Epoch) settled() (*dataset.Progress, error) {
	token, total := e.Progress.Token(), e.Plan.MiniBatches()
	numbers := token.Acknowledged()
	if e.Owned != nil {
		numbers = dataset.UnionRanges(numbers, dataset.ComplementRanges(e.Owned, total))
	}
	if len(numbers) > 0 && numbers[0].From == 0 {
		token.Mark, token.Ranges = numbers[0].To, numbers[1:]
	} else {
		token.Mark, token.Ranges = 0, numbers
	}
	return dataset.Resume(token, token.Job, total)
}

// empty reports whether the consumer owns no mini-batch of the epoch, acknowledged ones included.
func (e *Epoch) empty() bool {
	return e.Plan.MiniBatches() == 0 || e.Owned != nil && len(e.Owned) == 0 && e.Progress.Count() == 0
}
