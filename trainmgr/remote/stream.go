package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/remote/protocol"
)

// stream fetches the fragments of a piece, several at once, and yields them in order. It implements api.Stream.
type stream struct {
	piece    *piece
	ctx      context.Context
	cancel   context.CancelCauseFunc
	credits  chan struct{} // holds an element for each fetch under way, and for each answer that waits for Next
	fetches  chan *fetch   // in order; startFetches closes it
	previous *fetch        // whose mini-batch Next returned last; its room is given back when Next or Close is called
	wg       sync.WaitGroup
}

// fetch is one fragment on its way.
type fetch struct {
	release func()        // gives back the room that the input queue keeps
	done    chan struct{} // closed when mb or err is set
	mb      *tensor.MiniBatch
	err     error
}

// creditBytes is how many bytes a piece asks for at once, unless AttachOptions sets the number of mini-batches:
// twice the bytes that a fast network has under way. More connections with more bytes each only push each other out
// of the caches.
const creditBytes = 8 << 20

// creditsFor returns how many requests of a piece are under way at once, for mini-batches of that many bytes.
func creditsFor(o AttachOptions, bytes int64) int {
	if o.Credits > 0 {
		return o.Credits
	}
	return int(min(max(creditBytes/max(bytes, 1), 2), DefaultCredits))
}

func openStream(p *piece) *stream {
	credits := creditsFor(p.leases.rank.options, p.leases.rank.estimateBytes())
	s := &stream{piece: p, credits: make(chan struct{}, credits), fetches: make(chan *fetch, credits)}
	s.ctx, s.cancel = context.WithCancelCause(p.ctx)
	s.wg.Go(s.startFetches)
	return s
}

var errStreamClosed = errors.New("the stream is closed")

// startFetches asks for one fragment after another, as credits and the room of the input queue allow.
func (s *stream) startFetches() {
	defer close(s.fetches)
	l := s.piece.leases
	for number := s.piece.numbers.From; number < s.piece.numbers.To; number++ {
		if !l.wanted(number) {
			continue
		}
		select {
		case s.credits <- struct{}{}:
		case <-s.ctx.Done():
			return
		}
		release, err := l.delivery.Reserve(s.ctx, number, l.rank.estimateBytes())
		if err != nil {
			return
		}
		if !l.wanted(number) { // it has come by another lease meanwhile
			release()
			<-s.credits
			continue
		}
		f := &fetch{release: release, done: make(chan struct{})}
		s.fetches <- f // has room for all credits
		s.wg.Go(func() {
			defer close(f.done)
			meter, rows := l.rank.meter(s.piece.own), 0
			meter.Enter()
			defer func() { meter.Leave(rows) }()
			if f.mb, f.err = s.fetchBatch(number); f.mb != nil {
				rows = f.mb.Rows
				l.rank.profiler.NoteMade(f.mb.Name, s.piece.own)
			}
		})
	}
}

// fetchBatch asks the node for a fragment, as often as the rank's machine says.
func (s *stream) fetchBatch(number uint64) (*tensor.MiniBatch, error) {
	l, node := s.piece.leases, s.piece.node
	r := l.rank
	request, err := newBatchRequest(l.epoch.Progress.Job(), l.epoch.Number, l.epoch.Plan, number)
	if err != nil {
		return nil, err
	}
	request.until, request.drive = s.piece.numbers.To, s.piece.drive
	f := protocol.Fetch{Node: node.name, Begun: time.Now()}
	for {
		base := r.address(node)
		request.ticket = s.piece.ticket.Load()
		mb, err := s.fetchOnce(base, request)
		if err == nil {
			r.noteFrame(mb.Bytes())
			return mb, nil
		}
		if cause := context.Cause(s.ctx); cause != nil {
			return nil, cause
		}
		fault, after := fetchFault(err)
		var (
			again bool
			pause time.Duration
			tries int
		)
		r.tell(func(m *protocol.Machine, now time.Time) {
			again, pause, tries = m.FetchFailed(&f, base, fault, after, now)
		})
		if !again && fault == protocol.OtherFault {
			err = fmt.Errorf("fragment %d: %d attempts: %w", number, tries, err)
		}
		if !again {
			return nil, err
		}
		r.client.options.Logger.Debug("ask a node again", "job", r.id, "node", node.name, "number", number,
			"error", err)
		if err := wait.Sleep(s.ctx, pause); err != nil {
			return nil, err
		}
	}
}

// fetchFault says how an attempt failed, and how long a busy node asks the rank to wait.
func fetchFault(err error) (fault protocol.FetchFault, after time.Duration) {
	var busy *busyError
	switch {
	case errors.Is(err, ErrData), errors.Is(err, errRefused):
		return protocol.FinalFault, 0
	case errors.As(err, &busy):
		return protocol.BusyFault, busy.after
	}
	return protocol.OtherFault, 0
}

// fetchOnce asks the node for a fragment at one address. An answer after AttachOptions.Deadline is an error.
func (s *stream) fetchOnce(base string, request *batchRequest) (*tensor.MiniBatch, error) {
	r := s.piece.leases.rank
	late := fmt.Errorf("no answer within %v", r.options.Deadline)
	ctx, cancel := context.WithTimeoutCause(s.ctx, r.options.Deadline, late)
	defer cancel()
	mb, err := s.piece.node.fetchFrame(ctx, base, request, r.pool, r.schema)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	return mb, err
}

// releasePrevious gives back the room of the fragment that Next returned last.
func (s *stream) releasePrevious() {
	if s.previous != nil {
		s.previous.release()
		s.previous = nil
	}
}

// Next implements api.Stream.
func (s *stream) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	s.releasePrevious()
	select {
	case f, ok := <-s.fetches:
		if !ok {
			if cause := context.Cause(s.ctx); cause != nil {
				return nil, cause
			}
			return nil, io.EOF
		}
		<-f.done // the fetch ends with s.ctx at the latest
		<-s.credits
		s.previous = f
		return f.mb, f.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close implements api.Stream. It ends every fetch under way.
func (s *stream) Close() error {
	s.cancel(errStreamClosed)
	s.wg.Wait()
	s.releasePrevious()
	for f := range s.fetches {
		f.release()
		if f.mb != nil {
			f.mb.Release()
		}
	}
	return nil
}
