package sdk_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// settle waits until no more goroutines run than before.
func settle(t testing.TB, before int) {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if runtime.NumGoroutine() <= before {
			return
		}
	}
	buf := make([]byte, 1<<16)
	t.Fatalf("goroutines were left behind:\n%s", buf[:runtime.Stack(buf, true)])
}

// TestLentMemory keeps every mini-batch of a run and looks at the first ones again. Lent memory is not used again
// before its release, not even by another stream.
func TestLentMemory(t *testing.T) {
	l := layout{rows: 2000, group: 700, page: 2 << 10, seed: 51}
	data := write(t, l)
	prog, schema := jagged()
	p := onCPU(t, prog, schema, processor.Options{SLM: 8 << 20, Streams: 1})
	run := processor.Run{Partition: open(t, data, true), Rows: 2000, Batch: 100}
	want := truth(t, prog, schema, run)
	ctx := context.Background()
	var kept []*tensor.MiniBatch
	lent := 0
	for range 3 {
		s, err := p.Open(ctx, run)
		require.NoError(t, err)
		for {
			m, err := s.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			kept = append(kept, m)
			if m.Lent() {
				lent++
			}
		}
		require.NoError(t, s.Close())
	}
	assert.Positive(t, lent)
	assert.Less(t, lent, len(kept), "output buffers stay free")
	for i, m := range kept {
		require.Empty(t, tensor.Diff(want[i%len(want)], m), "mini-batch %d", i)
	}
	// Released memory is lent again.
	for _, m := range kept {
		m.Release()
	}
	before := p.Stats().BytesLent
	same(t, want, all(t, p, run))
	assert.Greater(t, p.Stats().BytesLent, before)
}

// TestRetained holds a mini-batch with two holders.
func TestRetained(t *testing.T) {
	data := write(t, layout{rows: 1000, group: 1000, page: 1 << 10, seed: 52})
	prog, schema := fixed()
	p := onCPU(t, prog, schema, processor.Options{SLM: 8 << 20, Streams: 1})
	run := processor.Run{Partition: open(t, data, true), Rows: 1000, Batch: 50}
	want := truth(t, prog, schema, run)
	s, err := p.Open(context.Background(), run)
	require.NoError(t, err)
	defer s.Close()
	first, err := s.Next(context.Background())
	require.NoError(t, err)
	require.True(t, first.Lent())
	first.Retain()
	first.Release()
	for i := 1; i < len(want); i++ {
		m, err := s.Next(context.Background())
		require.NoError(t, err)
		require.Empty(t, tensor.Diff(want[i], m))
		m.Release()
	}
	assert.Empty(t, tensor.Diff(want[0], first))
	first.Release()
}

// TestCancel ends streams while the engine hangs, in every way there is, and finds no goroutine left.
func TestCancel(t *testing.T) {
	data := write(t, layout{rows: 1000, group: 1000, page: 1 << 10, seed: 53})
	prog, schema := fixed()
	for name, end := range map[string]func(cancel context.CancelFunc, s processor.Stream, p processor.Processor){
		"close the stream":    func(_ context.CancelFunc, s processor.Stream, _ processor.Processor) { s.Close() },
		"cancel the context":  func(c context.CancelFunc, s processor.Stream, _ processor.Processor) { c(); s.Close() },
		"close the processor": func(_ context.CancelFunc, _ processor.Stream, p processor.Processor) { p.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			f := newFlash(2<<20, 512)
			part := place(t, data, f.put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
			f.hang = make(chan struct{})
			p, err := processor.Start(context.Background(), f, prog, schema, processor.Options{Streams: 1})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			s, err := p.Open(ctx, processor.Run{Partition: part, Rows: 1000, Batch: 10})
			require.NoError(t, err)
			short, stop := context.WithTimeout(context.Background(), 5*time.Millisecond)
			defer stop()
			_, err = s.Next(short)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			end(cancel, s, p)
			_, err = s.Next(context.Background())
			require.Error(t, err)
			require.NotErrorIs(t, err, io.EOF)
			require.NoError(t, p.Close())
			require.NoError(t, p.Close(), "a second close does nothing")
			_, err = p.Open(context.Background(), processor.Run{Partition: part, Rows: 1000, Batch: 10})
			require.Error(t, err)
			settle(t, before)
		})
	}
}

// TestNextGoesOn leaves a call of Next early; the stream loses nothing.
func TestNextGoesOn(t *testing.T) {
	data := write(t, layout{rows: 300, group: 1000, page: 1 << 10, seed: 54})
	prog, schema := fixed()
	for _, sync := range []bool{true, false} {
		p := onCPU(t, prog, schema, processor.Options{SLM: 4 << 20, Streams: 1, Sync: sync})
		run := processor.Run{Partition: open(t, data, true), Rows: 300, Batch: 50}
		want := truth(t, prog, schema, run)
		s, err := p.Open(context.Background(), run)
		require.NoError(t, err)
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		for i := range want {
			var m *tensor.MiniBatch
			for {
				if m, err = s.Next(ended); err == nil {
					break // it was ready
				}
				require.ErrorIs(t, err, context.Canceled)
				if m, err = s.Next(context.Background()); err == nil {
					break
				}
				require.NoError(t, err)
			}
			require.Empty(t, tensor.Diff(want[i], m))
			m.Release()
		}
		_, err = s.Next(context.Background())
		require.ErrorIs(t, err, io.EOF)
		_, err = s.Next(context.Background())
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
	}
}

// TestStreamsShare opens more streams than there are places.
func TestStreamsShare(t *testing.T) {
	data := write(t, layout{rows: 400, group: 1000, page: 1 << 10, seed: 55})
	prog, schema := fixed()
	p := onCPU(t, prog, schema, processor.Options{SLM: 4 << 20, Streams: 2})
	run := processor.Run{Partition: open(t, data, true), Rows: 400, Batch: 50}
	ctx := context.Background()
	a, err := p.Open(ctx, run)
	require.NoError(t, err)
	b, err := p.Open(ctx, run)
	require.NoError(t, err)
	short, stop := context.WithTimeout(ctx, 5*time.Millisecond)
	defer stop()
	_, err = p.Open(short, run)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	want := truth(t, prog, schema, run)
	for i := range want {
		for _, s := range []processor.Stream{a, b} {
			m, err := s.Next(ctx)
			require.NoError(t, err)
			require.Empty(t, tensor.Diff(want[i], m))
			m.Release()
		}
	}
	require.NoError(t, a.Close())
	c, err := p.Open(ctx, run)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, b.Close())
}
