package processor_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
	"github.com/millrace/millrace/sdk/tensor"
)

// TestLentMemory keeps every mini-batch of a run and looks at the first ones again. Lent memory is not used again
// before its release, not even by another stream.
func TestLentMemory(t *testing.T) {
	l := processortest.Layout{Rows: 2000, Group: 700, Page: 2 << 10, Seed: 51}
	data := processortest.WriteParquet(t, l)
	prog, schema := processortest.Jagged()
	p := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 8 << 20, Streams: 1})
	run := processor.Run{Partition: processortest.Open(t, data, true), Rows: 2000, Batch: 100}
	want := processortest.Reference(t, prog, schema, run)
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
	processortest.RequireSame(t, want, processortest.MiniBatches(t, p, run))
	assert.Greater(t, p.Stats().BytesLent, before)
}

// TestCopiedMemoryIsUsedAgain checks that a mini-batch that is copied out of the target's memory lies where a released
// one lay, and that one which is not released keeps its memory.
func TestCopiedMemoryIsUsedAgain(t *testing.T) {
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 4000, Group: 700, Page: 2 << 10, Seed: 53})
	prog, schema := processortest.Jagged()
	p := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 8 << 20, Streams: 1, Copy: true})
	run := processor.Run{Partition: processortest.Open(t, data, true), Rows: 4000, Batch: 100}
	want := processortest.Reference(t, prog, schema, run)
	s, err := p.Open(t.Context(), run)
	require.NoError(t, err)
	defer s.Close()
	places := map[*float32]bool{}
	var kept *tensor.MiniBatch
	for i := range want {
		m, err := s.Next(t.Context())
		require.NoError(t, err)
		assert.False(t, m.Lent())
		require.Empty(t, tensor.Diff(want[i], m), "mini-batch %d", i)
		places[&m.Label[0]] = true
		if i == 0 {
			kept = m
			continue
		}
		m.Release()
	}
	require.Empty(t, tensor.Diff(want[0], kept))
	assert.Less(t, len(places), 8, "of %d mini-batches", len(want))
}

// TestRetained has a mini-batch with two holders.
func TestRetained(t *testing.T) {
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 1000, Group: 1000, Page: 1 << 10, Seed: 52})
	prog, schema := processortest.Fixed()
	p := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 8 << 20, Streams: 1})
	run := processor.Run{Partition: processortest.Open(t, data, true), Rows: 1000, Batch: 50}
	want := processortest.Reference(t, prog, schema, run)
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

// TestCancel ends streams while the engine hangs, in every way that a stream can end. No goroutine is left.
func TestCancel(t *testing.T) {
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 1000, Group: 1000, Page: 1 << 10, Seed: 53})
	prog, schema := processortest.Fixed()
	for name, end := range map[string]func(cancel context.CancelFunc, s processor.Stream, p processor.Processor){
		"close the stream":    func(_ context.CancelFunc, s processor.Stream, _ processor.Processor) { s.Close() },
		"cancel the context":  func(c context.CancelFunc, s processor.Stream, _ processor.Processor) { c(); s.Close() },
		"close the processor": func(_ context.CancelFunc, _ processor.Stream, p processor.Processor) { p.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			leaks.Check(t)
			f := processortest.NewFlash(2<<20, 512)
			part := processortest.Place(t, data, f.Put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
			f.Hang = make(chan struct{})
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
		})
	}
}

// TestNextGoesOn ends the context of a call of Next early. The stream loses no mini-batch.
func TestNextGoesOn(t *testing.T) {
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 300, Group: 1000, Page: 1 << 10, Seed: 54})
	prog, schema := processortest.Fixed()
	for _, sync := range []bool{true, false} {
		p := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 4 << 20, Streams: 1, Sync: sync})
		run := processor.Run{Partition: processortest.Open(t, data, true), Rows: 300, Batch: 50}
		want := processortest.Reference(t, prog, schema, run)
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

// TestStreamsShare opens more streams than the processor runs at once.
func TestStreamsShare(t *testing.T) {
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 400, Group: 1000, Page: 1 << 10, Seed: 55})
	prog, schema := processortest.Fixed()
	p := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 4 << 20, Streams: 2})
	run := processor.Run{Partition: processortest.Open(t, data, true), Rows: 400, Batch: 50}
	ctx := context.Background()
	a, err := p.Open(ctx, run)
	require.NoError(t, err)
	b, err := p.Open(ctx, run)
	require.NoError(t, err)
	short, stop := context.WithTimeout(ctx, 5*time.Millisecond)
	defer stop()
	_, err = p.Open(short, run)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	want := processortest.Reference(t, prog, schema, run)
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
