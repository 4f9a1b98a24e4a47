package processor

import (
	"context"
	"fmt"
	"sync"

	"github.com/millrace/millrace/sdk/slicer"
)

// streamRegistry holds the open streams of a processor, and what they leave for later streams: sizes of pages, or a
// panic, after which no stream is opened.
type streamRegistry struct {
	mu       sync.Mutex // guards what follows
	open     map[*stream]struct{}
	learned  slicer.Learned
	panicErr error // a stream panicked
	closed   bool
	closeErr error
}

// begin begins a stream of a processor in a share of its memory.
func (g *streamRegistry) begin(ctx context.Context, r *runner, share *memoryShare, run Run) (*stream, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m, err := newMaker(r, share, run, &g.learned)
	if err != nil {
		return nil, err
	}
	if g.closed {
		return nil, fmt.Errorf("%s: open a stream: %w", run.Partition.Name, ErrClosed)
	}
	if g.panicErr != nil {
		return nil, fmt.Errorf("%s: open a stream: start a new processor, since of this one: %w",
			run.Partition.Name, g.panicErr)
	}
	s := newStream(ctx, m, run.Partition.Expect(r.pipeline.leaves, run.First, run.Rows))
	g.open[s] = struct{}{}
	return s, nil
}

// refuseStreams makes every later begin fail with an error.
func (g *streamRegistry) refuseStreams(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.panicErr == nil {
		g.panicErr = why
	}
}

// end removes a stream that has ended, and gives its memory back to the pool.
func (g *streamRegistry) end(s *stream, pool *memoryPool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, s)
	g.learned.Merge(s.maker.slicer.Learned())
	pool.giveBack(s.maker.memory)
}

// closeAll closes the open streams and then the target, once. A later call returns the error of the first.
func (g *streamRegistry) closeAll(closeTarget func() error) error {
	g.mu.Lock()
	if g.closed {
		defer g.mu.Unlock()
		return g.closeErr
	}
	g.closed = true
	var open []*stream
	for s := range g.open {
		open = append(open, s)
	}
	g.mu.Unlock()
	for _, s := range open {
		_ = s.Close()
	}
	err := closeTarget()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closeErr = err
	return err
}
