package processor

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// pendingBatch is a mini-batch that a maker made. Its tensors may still be on their way from the target.
type pendingBatch struct {
	batch   *tensor.MiniBatch
	needed  int64         // bytes of the partition, see slicer.Done
	fetched chan struct{} // closed at the end of the fetch; err is then set. nil: there was nothing to wait for
	err     error
}

// awaitFetch waits for the tensors and returns the mini-batch. If the fetch failed, it releases the mini-batch and
// returns the error.
func (m *pendingBatch) awaitFetch() (*tensor.MiniBatch, error) {
	if m.fetched != nil {
		<-m.fetched
	}
	if m.err != nil {
		m.batch.Release()
		return nil, m.err
	}
	return m.batch, nil
}

// discard waits until nothing writes to the mini-batch any more, and releases it.
func (m *pendingBatch) discard() {
	if b, err := m.awaitFetch(); err == nil {
		b.Release()
	}
}

// fetch copies the tensors of a buffer to a mini-batch's own memory.
type fetch struct {
	target target.Target
	stats  *counters
	buffer *slicer.Buffer
	from   []byte // the buffer, where it is mapped
	to     []byte
	runs   []bufferRun
	place  string // the rows, for errors
}

// copyRuns copies the runs of bytes, one after the other.
func (f *fetch) copyRuns(ctx context.Context) error {
	start := time.Now()
	for _, run := range f.runs {
		if f.from != nil {
			copy(f.to[run.to:][:run.length], f.from[run.from:])
		} else if err := f.target.Load(ctx, f.buffer.Span.Addr+run.from, f.to[run.to:][:run.length]); err != nil {
			return fmt.Errorf("%s: fetch: %w", f.place, err)
		}
	}
	f.stats.bytesFetched.Add(int64(len(f.to)))
	f.stats.fetch.Add(int64(time.Since(start)))
	return nil
}

// startCopying copies in a goroutine of its own, which ends with ctx and gives the buffer back to the share. The
// mini-batch is whole when awaitFetch returns it.
func (f *fetch) startCopying(ctx context.Context, b *tensor.MiniBatch, memory *memoryShare) *pendingBatch {
	m := &pendingBatch{batch: b, fetched: make(chan struct{})}
	go func() {
		defer close(m.fetched)
		defer memory.returnBuffer(f.buffer)
		defer Contain(f.place, &m.err)
		m.err = f.copyRuns(ctx)
	}()
	return m
}
