package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/target"
)

// feedDepth is how many pieces of windows a feeder reads and stores at once. Sources that are reached over a network
// answer late, so that several are asked for.
const feedDepth = 8

// feeder brings windows of partitions that the drive does not hold: it reads them from the partition's reader and
// stores them in the drive's memory. Its buffers are bounded by feedDepth pieces of one transfer each, for all streams
// of a processor.
type feeder struct {
	slm      *SLM
	piece    uint64        // most bytes of one read and store
	underway chan struct{} // a token for each piece under way
	buffers  sync.Pool     // Its buffers are *[]byte.
}

func newFeeder(slm *SLM, piece int) *feeder {
	return &feeder{slm: slm, piece: uint64(piece), underway: make(chan struct{}, feedDepth)}
}

// feed performs moves from the host. They are done, or given up at the first error, when it returns.
func (f *feeder) feed(ctx context.Context, p *partition.Partition, moves []target.Move) error {
	if len(moves) == 0 {
		return nil
	}
	a := f.begin(ctx, p, moves)
	defer a.cancel()
	return a.wait()
}

// feeding is a number of moves under way.
type feeding struct {
	stop context.CancelFunc
	done sync.WaitGroup

	mu  sync.Mutex // guards err
	err error      // the first
}

// begin begins to perform moves from the host.
func (f *feeder) begin(ctx context.Context, p *partition.Partition, moves []target.Move) *feeding {
	a := new(feeding)
	if len(moves) == 0 {
		return a
	}
	prepareReads(p, moves)
	ctx, a.stop = context.WithCancel(ctx)
	a.done.Go(func() {
		for _, m := range moves {
			for off := uint64(0); off < m.Len; off += f.piece {
				part := target.Move{Source: m.Source, From: m.From + off, Len: min(m.Len-off, f.piece), To: m.To + off}
				select {
				case f.underway <- struct{}{}:
				case <-ctx.Done():
					a.fail(context.Cause(ctx))
					return
				}
				a.done.Go(func() {
					defer func() { <-f.underway }()
					if err := f.store(ctx, p, part); err != nil {
						a.fail(err)
					}
				})
			}
		}
	})
	return a
}

// prepareReads announces the bytes that are moved to a reader that reads ahead, so that they come by joined requests.
func prepareReads(p *partition.Partition, moves []target.Move) {
	r, ok := p.AheadReader()
	if !ok {
		return
	}
	runs := make([]partition.Run, len(moves))
	for i, m := range moves {
		runs[i] = partition.Run{From: m.From, Len: m.Len}
	}
	r.Prepare(runs)
}

// fail notes the first error and gives the rest up.
func (a *feeding) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err = err
		a.stop()
	}
}

// wait waits for all moves, and returns the first error.
func (a *feeding) wait() error {
	a.done.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// cancel gives up what is not done, and waits until nothing is under way.
func (a *feeding) cancel() {
	if a.stop != nil {
		a.stop()
	}
	a.done.Wait()
}

// store performs one move of at most a piece.
func (f *feeder) store(ctx context.Context, p *partition.Partition, m target.Move) (err error) {
	defer processor.Contain("read a window on the host", &err)
	size := uint64(max(p.Size, 0))
	if m.Source != target.FromHost || m.From > size {
		return fmt.Errorf("%s: move bytes %d+%d of %d from %v: want bytes of the partition from the host",
			f.slm.c.d.name, m.From, m.Len, size, m.Source)
	}
	have := min(m.Len, size-m.From)
	if b := p.Bytes(); b != nil && have == m.Len {
		return f.slm.Store(ctx, m.To, b[m.From:][:m.Len])
	}
	buf, _ := f.buffers.Get().(*[]byte)
	if buf == nil || uint64(cap(*buf)) < m.Len {
		buf = new([]byte)
		*buf = make([]byte, m.Len)
	}
	defer f.buffers.Put(buf)
	b := (*buf)[:m.Len]
	if n, err := p.ReadAtContext(ctx, b[:have], int64(m.From)); uint64(n) < have {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("read bytes %d+%d on the host: %w", m.From, have, err)
	}
	clear(b[have:]) // the rest of the last block
	return f.slm.Store(ctx, m.To, b)
}
