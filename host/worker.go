package host

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// worker is one open split: PreSto's preprocess worker. It implements api.Stream.
type worker struct {
	job       *job
	processor *processor
	order     api.SplitRequest
	plan      *dataset.Plan // of the order's epoch
	source    sdk.Stream
	next      int                 // mini-batch of the split that comes next from the source
	ready     []*tensor.MiniBatch // mixed and not yet taken
	unchanged func() error        // looks again where the partition lies, and at its end
	closed    bool
}

// open starts a worker. With mixed rows it starts at the window's first mini-batch, whichever the order wants first.
func (j *job) open(ctx context.Context, d *Drive, p *processor, order api.SplitRequest,
	part *sdk.Partition) (*worker, error) {
	plan, err := j.plan(order.Epoch)
	if err != nil {
		return nil, err
	}
	want, err := plan.Split(order.Split.Place)
	if err != nil {
		return nil, err
	}
	if want != order.Split || order.From < 0 || order.From >= want.MiniBatches {
		return nil, fmt.Errorf("order of mini-batch %d of split %+v, the plan has %+v: both sides must plan alike", order.From, order.Split, want)
	}
	w := &worker{job: j, processor: p, order: order, plan: plan, next: order.From,
		unchanged: func() error { return d.unchanged(part) }}
	if o := plan.Options(); o.Shuffle == dataset.ShuffleRows {
		w.next -= w.next % o.Window
	}
	batch := plan.Options().Batch
	skipped := int64(w.next) * int64(batch)
	if err := w.unchanged(); err != nil {
		return nil, err
	}
	w.source, err = p.Open(ctx,
		sdk.Run{Partition: part, First: want.First + skipped, Rows: want.Rows - skipped, Batch: batch})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Next yields the next mini-batch, named; io.EOF ends the split.
func (w *worker) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	for {
		mb, err := w.mixed(ctx)
		if err != nil {
			return nil, err
		}
		if mb.Name.Number >= w.order.Split.FirstNumber+uint64(w.order.From) {
			return mb, nil
		}
		mb.Release() // of the window's beginning, delivered before
	}
}

// mixed yields mini-batches with their rows mixed inside their window, where the plan says so.
func (w *worker) mixed(ctx context.Context) (*tensor.MiniBatch, error) {
	if w.plan.Options().Shuffle != dataset.ShuffleRows {
		return w.named(ctx)
	}
	if len(w.ready) == 0 {
		if w.next == w.order.Split.MiniBatches {
			return w.named(ctx) // io.EOF, or what should not be there
		}
		if err := w.mix(ctx); err != nil {
			return nil, err
		}
	}
	mb := w.ready[0]
	w.ready = w.ready[1:]
	return mb, nil
}

// mix gathers one window. The mini-batches from the drive are copied at once, so that a window does not hold the
// drive's memory.
func (w *worker) mix(ctx context.Context) error {
	window, err := w.plan.Window(w.order.Split.FirstNumber + uint64(w.next))
	if err != nil {
		return err
	}
	perm, err := w.plan.RowPermutation(window)
	if err != nil {
		return err
	}
	cut := make([]*tensor.MiniBatch, 0, window.MiniBatches)
	defer func() {
		for _, mb := range cut {
			mb.Release()
		}
	}()
	for range window.MiniBatches {
		mb, err := w.named(ctx)
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("the split ended %d mini-batches into a window of %d", len(cut), window.MiniBatches)
		}
		if err != nil {
			return err
		}
		if mb.Lent() {
			own := mb.Clone()
			mb.Release()
			mb = own
		}
		cut = append(cut, mb)
	}
	w.ready, err = tensor.Gather(cut, perm)
	return err
}

// named takes the next mini-batch from the source and gives it its name.
func (w *worker) named(ctx context.Context) (*tensor.MiniBatch, error) {
	mb, err := w.source.Next(ctx)
	if err != nil {
		return nil, err
	}
	if w.next >= w.order.Split.MiniBatches {
		mb.Release()
		return nil, fmt.Errorf("the drive made more than the split's %d mini-batches", w.order.Split.MiniBatches)
	}
	mb.Name = tensor.Name{Job: [32]byte(w.order.Job), Epoch: w.order.Epoch,
		Number: w.order.Split.FirstNumber + uint64(w.next)}
	w.next++
	if w.next == w.order.Split.MiniBatches {
		if err := w.unchanged(); err != nil { // the split's blocks have been read: they must still be the file's
			mb.Release()
			return nil, err
		}
	}
	return mb, nil
}

// Close ends the split. Further calls do nothing.
func (w *worker) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	for _, mb := range w.ready {
		mb.Release()
	}
	w.ready = nil
	err := w.source.Close()
	w.job.leave(w.processor)
	return err
}
