package vocabulary

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/sdk/tensor"
)

// AddMiniBatch adds a mini-batch whose keys are the builder's columns, and whose first row has the number first in the
// data set. Goroutines take one column after the other; they end before AddMiniBatch returns.
func (b *Builder) AddMiniBatch(first uint64, mb *tensor.MiniBatch) error {
	return addMiniBatch(b.Add, len(b.columns), first, mb)
}

// addMiniBatch adds a mini-batch of some columns by add, which goroutines call.
func addMiniBatch(add func(column int, first uint64, ids []int64, lengths []int32) error, columns int, first uint64,
	mb *tensor.MiniBatch) error {
	n := len(mb.Schema.Keys)
	if n != columns || mb.Schema.IDs != tensor.Int64 || mb.Unique != nil {
		return fmt.Errorf("vocabulary: a mini-batch of %d keys of %v for %d columns of int64 that are not deduplicated",
			n, mb.Schema.IDs, columns)
	}
	starts := mb.OffsetPerKey()
	return inParallel(n, func(i int) error {
		var lengths []int32
		if mb.Lengths != nil {
			lengths = mb.Lengths[i*mb.Rows:][:mb.Rows]
		}
		return add(i, first, mb.Values64[starts[i]:starts[i+1]], lengths)
	})
}

// inParallel calls do for 0 to n-1, on as many goroutines as the machine runs at once, this one included. They end
// before inParallel returns the errors.
func inParallel(n int, do func(i int) error) error {
	var next atomic.Int64
	errs := make([]error, n)
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			errs[i] = do(i)
		}
	}
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
	return errors.Join(errs...)
}
