package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/millrace/millrace/sdk/tensor"
)

// tries is how often a mini-batch is asked for before its node counts as failed.
const tries = 3

// stream is the mini-batches of a piece, in order, several asked for at once.
type stream struct {
	p      *piece
	ctx    context.Context
	cancel context.CancelCauseFunc
	credit chan struct{} // one in it for each answer that is under way or waits
	out    chan *fetch   // in order; closed by the feeder
	last   *fetch        // what Next returned before: its room is given back when it is in the queue
	wg     sync.WaitGroup
}

// fetch is one mini-batch under way.
type fetch struct {
	number  uint64
	release func() // gives back the room that the input queue keeps
	done    chan struct{}
	mb      *tensor.MiniBatch
	err     error
}

// creditBytes is what is asked for at once from a piece, unless AttachOptions says how many mini-batches: twice what a fast network has under way. More
// connections with more bytes each would only push each other out of the caches.
const creditBytes = 8 << 20

// credits is how many requests of a piece are under way at once, for mini-batches of so many bytes.
func credits(o AttachOptions, bytes int64) int {
	if o.Credits > 0 {
		return o.Credits
	}
	return int(min(max(creditBytes/max(bytes, 1), 2), DefaultCredits))
}

func openStream(p *piece) *stream {
	credits := credits(p.l.rank.o, p.l.rank.estimate())
	s := &stream{p: p, credit: make(chan struct{}, credits), out: make(chan *fetch, credits)}
	s.ctx, s.cancel = context.WithCancelCause(p.ctx)
	s.wg.Go(s.feed)
	return s
}

var errStreamClosed = errors.New("the stream is closed")

// feed asks for one mini-batch after another, as credits and the input queue allow.
func (s *stream) feed() {
	defer close(s.out)
	l := s.p.l
	for n := s.p.run.From; n < s.p.run.To; n++ {
		if !l.wanted(n) {
			continue
		}
		select {
		case s.credit <- struct{}{}:
		case <-s.ctx.Done():
			return
		}
		release, err := l.delivery.Reserve(s.ctx, n, l.rank.estimate())
		if err != nil {
			return
		}
		f := &fetch{number: n, release: release, done: make(chan struct{})}
		if !l.wanted(n) { // it has come by another lease meanwhile
			release()
			<-s.credit
			continue
		}
		s.out <- f // has room for all credits
		s.wg.Go(func() {
			defer close(f.done)
			f.mb, f.err = s.fetch(n)
		})
	}
}

// fetch asks the node for a mini-batch, in another way after a failure, and as long as the deadline allows while the node
// says that it is busy.
func (s *stream) fetch(number uint64) (*tensor.MiniBatch, error) {
	l, node := s.p.l, s.p.node
	r := l.rank
	a := &ask{job: r.digest, epoch: l.epoch.Number, number: number, until: s.p.run.To, drive: s.p.drive}
	begin := time.Now()
	for try := 1; ; {
		base := node.base()
		a.ticket = s.p.ticket.Load()
		ctx, cancel := context.WithTimeoutCause(s.ctx, r.o.Deadline, fmt.Errorf("no answer within %v", r.o.Deadline))
		mb, err := node.get(ctx, base, a, r.pool, r.schema)
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
		}
		cancel()
		if err == nil {
			if n := mb.Bytes(); n > r.frame.Load() {
				r.frame.Store(n)
			}
			return mb, nil
		}
		if cause := context.Cause(s.ctx); cause != nil {
			return nil, cause
		}
		var busy *busyError
		wait := 20 * time.Millisecond * time.Duration(try)
		switch {
		case errors.Is(err, ErrData), errors.Is(err, errRefused):
			return nil, err
		case errors.As(err, &busy):
			wait = max(wait, busy.after)
			if time.Since(begin)+wait > r.o.Deadline {
				return nil, err
			}
		case try == tries:
			return nil, fmt.Errorf("mini-batch %d: %d attempts: %w", number, try, err)
		default:
			node.avoid(base)
			try++
		}
		r.client.o.Logger.Debug("ask a node again", "job", r.id, "node", node.name, "number", number, "error", err)
		if err := sleep(s.ctx, wait); err != nil {
			return nil, err
		}
	}
}

// free gives back the room of the mini-batch that Next returned last.
func (s *stream) free() {
	if s.last != nil {
		s.last.release()
		s.last = nil
	}
}

// Next returns the next mini-batch.
func (s *stream) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	s.free()
	select {
	case f, ok := <-s.out:
		if !ok {
			if cause := context.Cause(s.ctx); cause != nil {
				return nil, cause
			}
			return nil, io.EOF
		}
		<-f.done // the fetch ends with s.ctx
		<-s.credit
		s.last = f
		return f.mb, f.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close ends what is under way.
func (s *stream) Close() error {
	s.cancel(errStreamClosed)
	s.wg.Wait()
	s.free()
	for f := range s.out {
		f.release()
		if f.mb != nil {
			f.mb.Release()
		}
	}
	return nil
}
