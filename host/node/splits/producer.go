package splits

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// producer carries out the steps of one open split. It is used by one goroutine.
type producer struct {
	split  *openSplit
	stream api.Stream       // nil while it is closed
	defers <-chan time.Time // ends the wait of stepDefer; nil while no such wait has begun
}

// run carries out steps until the split has ended.
func (p *producer) run() {
	defer p.closeStream()
	for {
		step, number := p.split.beginStep()
		if step != stepDefer {
			p.defers = nil
		}
		switch step {
		case stepEnd:
			return
		case stepClose:
			p.closeStream()
		case stepWait:
			p.wait()
		case stepDefer:
			p.waitForOthers()
		case stepOpen:
			p.closeStream()
			p.openStream(number)
		case stepMake:
			p.makeMiniBatch(number)
		}
	}
}

// beginStep returns what the producer does next, and the number of the fragment that the stream makes next.
func (s *openSplit) beginStep() (step, uint64) {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	step := s.nextStep()
	s.waitedInVain, s.streamed = false, s.streamed || step == stepOpen
	return step, s.next
}

// wait waits until something changes.
func (p *producer) wait() {
	select {
	case <-p.split.wakeup:
	case <-p.split.ctx.Done():
	}
}

// waitForOthers waits for requests of earlier mini-batches. However often the producer is woken, it waits reorderWait
// in all.
func (p *producer) waitForOthers() {
	if p.defers == nil {
		p.defers = time.After(reorderWait)
	}
	select {
	case <-p.split.wakeup:
	case <-p.defers:
		p.split.table.mu.Lock()
		p.split.waitedInVain = true
		p.split.table.mu.Unlock()
	case <-p.split.ctx.Done():
	}
}

// closeStream closes the stream, if it is open.
func (p *producer) closeStream() {
	if p.stream == nil {
		return
	}
	err := containPanic(p.stream.Close)
	p.stream = nil
	p.split.table.recordClosed(p.split, err)
}

// openStream opens the stream at a fragment of the split. Where the drive has no free stream it waits for one, for at
// most Options.BusyWait.
func (p *producer) openStream(number uint64) {
	s, t := p.split, p.split.table
	request := api.SplitRequest{
		Job: s.key.Job, Drive: s.key.Drive, Epoch: s.key.Epoch, Split: s.split, From: int(number - s.split.FirstFragment),
	}
	deadline := time.Now().Add(t.o.BusyWait)
	satisfied := func() {}
	defer func() { satisfied() }()
	for first := true; ; first = false {
		closed := t.nextStreamClosed()
		err := containPanic(func() (err error) {
			p.stream, err = t.o.Open(s.ctx, request)
			return err
		})
		if err == nil {
			t.recordOpened(s)
			return
		}
		p.stream = nil
		left := time.Until(deadline)
		if !errors.Is(err, api.ErrBusy) || left <= 0 {
			p.fail(err)
			return
		}
		if first {
			satisfied = t.demandStream(s.key.streamPool())
		}
		if err := waitFor(s.ctx, closed, left); err != nil {
			p.fail(err)
			return
		}
	}
}

// waitFor waits until a channel is closed, at most for a time. It fails when ctx ends.
func waitFor(ctx context.Context, closed <-chan struct{}, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// makeMiniBatch makes the next mini-batch.
func (p *producer) makeMiniBatch(number uint64) {
	s := p.split
	var mb *tensor.MiniBatch
	err := containPanic(func() (err error) {
		mb, err = p.stream.Next(s.ctx)
		return err
	})
	switch {
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("the split ended at mini-batch %d of %d: %w",
			number-s.split.FirstFragment, s.split.Fragments, io.ErrUnexpectedEOF)
	case err == nil && s.numberOf(mb) != number:
		err = fmt.Errorf("the drive made mini-batch %d where %d was next", mb.Name.Number,
			s.split.FirstBatch+number-s.split.FirstFragment)
		mb.Release()
	case err == nil:
		s.table.add(s, mb)
		return
	}
	p.closeStream()
	p.fail(err)
}

// fail ends the waiting requests with an error.
func (p *producer) fail(err error) {
	s, t := p.split, p.split.table
	if s.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = context.Cause(s.ctx)
	}
	t.mu.Lock()
	s.failed = err
	s.refuseWaiting(err)
	t.mu.Unlock()
	t.recordFailure(s, err)
}

// containPanic turns a panic of f into an error, a *processor.PanicError.
func containPanic(f func() error) (err error) {
	defer processor.Contain("the worker", &err)
	return f()
}
