package delivery

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

// Settled returns a new Progress in which every mini-batch that need not come counts as acknowledged: the
// mini-batches that were acknowledged, and those that the consumer does not own.
func (e *Epoch) Settled() (*dataset.Progress, error) {
	numbers, total := e.Progress.Token().Acknowledged(), e.Plan.MiniBatches()
	if e.Owned != nil {
		numbers = dataset.UnionRanges(numbers, dataset.ComplementRanges(e.Owned, total))
	}
	return e.progressOf(numbers, total)
}

// fragmentsOf returns a new Progress in which the fragments of the mini-batches of another one count as acknowledged.
func (e *Epoch) fragmentsOf(miniBatches *dataset.Progress) (*dataset.Progress, error) {
	var fragments []dataset.Range
	for _, r := range miniBatches.Token().Acknowledged() {
		fragments = append(fragments, e.Plan.FragmentsOf(r))
	}
	return e.progressOf(fragments, e.Plan.Fragments())
}

// progressOf returns a new Progress in which ranges of total numbers count as acknowledged.
func (e *Epoch) progressOf(ranges []dataset.Range, total uint64) (*dataset.Progress, error) {
	token := e.Progress.Token()
	token.Mark, token.Ranges = 0, ranges
	if len(ranges) > 0 && ranges[0].From == 0 {
		token.Mark, token.Ranges = ranges[0].To, ranges[1:]
	}
	return dataset.Resume(token, token.Job, total)
}

// Empty reports whether the consumer owns no mini-batch of the epoch, acknowledged ones included.
func (e *Epoch) Empty() bool {
	return e.Plan.MiniBatches() == 0 || e.Owned != nil && len(e.Owned) == 0 && e.Progress.Count() == 0
}
