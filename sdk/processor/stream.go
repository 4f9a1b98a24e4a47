package processor

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/millrace/millrace/sdk/tensor"
)

// stream hands on its maker's mini-batches. A goroutine keeps the maker one mini-batch ahead: it makes a mini-batch
// while the consumer has the mini-batch before, and then waits.
type stream struct {
	maker         *maker
	ctx           context.Context
	cancel        context.CancelCauseFunc
	stopExpecting func()             // ends Expect, because the rows are not read any more
	pending       chan *pendingBatch // closed at the end; err is then set. nil without a goroutine
	err           error
	fetchErr      error // The failed fetch, which Next returns from then on.
	once          sync.Once
}

func newStream(ctx context.Context, m *maker, forget func()) *stream {
	s := &stream{maker: m, stopExpecting: forget}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	if !m.runner.opts.Sync {
		s.pending = make(chan *pendingBatch)
		go s.makeAhead()
	}
	return s
}

// makeAhead is the goroutine of the stream. It ends when the run does, at an error, or with the stream's context.
func (s *stream) makeAhead() {
	defer close(s.pending)
	for {
		m, err := s.makeContained()
		if err != nil {
			s.err = err
			return
		}
		select {
		case s.pending <- m:
		case <-s.ctx.Done():
			m.discard()
			s.err = context.Cause(s.ctx)
			return
		}
	}
}

// Next implements Stream.
func (s *stream) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	if s.fetchErr != nil {
		return nil, s.fetchErr
	}
	if ctx.Err() != nil { // also if a mini-batch is ready, since select takes either
		return nil, context.Cause(ctx)
	}
	var m *pendingBatch
	if s.pending == nil {
		if s.err == nil {
			m, s.err = s.makeInCaller()
		}
	} else {
		select {
		case m = <-s.pending:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if m == nil {
		return nil, s.err
	}
	b, err := m.awaitFetch()
	if err != nil {
		s.fetchErr = err
		s.cancel(err)
		return nil, err
	}
	s.maker.runner.stats.countHandedOn(b, m.needed)
	return b, nil
}

// makeInCaller makes one mini-batch in the caller's goroutine. The work ends early only with the stream's context.
func (s *stream) makeInCaller() (*pendingBatch, error) {
	if s.ctx.Err() != nil {
		return nil, context.Cause(s.ctx)
	}
	return s.makeContained()
}

// makeContained lets the maker make a mini-batch. A panic in the maker ends this stream. The state of the target's
// memory is then not known, so the processor opens no stream afterwards.
func (s *stream) makeContained() (m *pendingBatch, err error) {
	defer func() {
		if p := recover(); p != nil {
			where := fmt.Sprintf("%s: rows from %d on", s.maker.partition.Name, s.maker.slicer.FirstRow())
			m, err = nil, &PanicError{Where: where, Value: p, Stack: debug.Stack()}
			s.maker.runner.streams.refuseStreams(err)
		}
	}()
	return s.maker.makeNext(s.ctx)
}

// Close implements Stream.
func (s *stream) Close() error {
	s.once.Do(func() {
		s.cancel(errStreamClosed)
		if s.pending != nil {
			for m := range s.pending {
				m.discard()
			}
		} else if s.err == nil {
			s.err = errStreamClosed
		}
		s.stopExpecting()
		r := s.maker.runner
		r.streams.end(s, r.memory)
	})
	return nil
}
