package processor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/tensor"
)

// selectRows returns the rows of a partition that pass, by their number.
func selectRows(t require.TestingT, p *partition.Partition, passes func(row int) bool) *selection.Rows {
	b, err := selection.NewBuilder(&dataset.Manifest{Partitions: []dataset.Partition{p.Describe()}}, dataset.Digest{})
	require.NoError(t, err)
	outcome := make([]bool, p.Rows)
	for row := range outcome {
		outcome[row] = passes(row)
	}
	require.NoError(t, b.Add(0, 0, outcome))
	s, err := b.Finish()
	require.NoError(t, err)
	return s.Rows(0)
}

// sizesOf returns the rows of each mini-batch.
func sizesOf(batches []*tensor.MiniBatch) (sizes []int) {
	for _, m := range batches {
		sizes = append(sizes, m.Rows)
	}
	return sizes
}

// sizesOfRun returns the rows that each mini-batch of a run must have.
func sizesOfRun(run processor.Run) (sizes []int) {
	next := run.FirstBatch
	if next == 0 {
		next = run.Batch
	}
	for left := int(run.Rows); left > 0; next = run.Batch {
		sizes = append(sizes, min(next, left))
		left -= min(next, left)
	}
	return sizes
}

// TestFirstBatch opens runs whose first mini-batch is short, of all rows and of selected ones, on engines of many
// memories. The mini-batches have the sizes that were asked for, and hold the same rows as one mini-batch of the whole
// partition.
func TestFirstBatch(t *testing.T) {
	kinds := []string{"fixed", "jagged", "mapped"}
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		l := processortest.Layout{
			Rows:  rapid.IntRange(1, 600).Draw(rt, "rows"),
			Group: rapid.SampledFrom([]int{7, 100, 1 << 20}).Draw(rt, "group"),
			Page:  rapid.SampledFrom([]int{200, 5000}).Draw(rt, "page"), Seed: rng.Uint64(),
		}
		prog, schema := processortest.Programs()[rapid.SampledFrom(kinds).Draw(rt, "kind")]()
		data := processortest.WriteParquet(t, l)
		whole := processortest.Open(t, data, true)
		selected := selectRows(rt, whole, func(int) bool { return true })
		run := processor.Run{Batch: rapid.IntRange(1, 300).Draw(rt, "batch")}
		if rapid.Bool().Draw(rt, "selected rows") {
			percent := rapid.SampledFrom([]int{2, 50, 100}).Draw(rt, "percent that pass")
			selected = selectRows(rt, whole, func(int) bool { return rng.IntN(100) < percent })
			run.Selected = selected
		}
		if selected.Passing() == 0 {
			return
		}
		run.First = rng.Int64N(selected.Passing())
		run.Rows = 1 + rng.Int64N(selected.Passing()-run.First)
		run.FirstBatch = rapid.IntRange(0, run.Batch).Draw(rt, "first batch")
		all := processortest.Reference(t, prog, schema, processor.Run{Partition: whole, Rows: whole.Rows, Batch: l.Rows})[0]
		rows := make([]uint32, 0, run.Rows)
		for i := range run.Rows {
			rows = append(rows, uint32(selected.Row(run.First+i)))
		}
		chosen, err := tensor.NewCompactor(all.Schema, len(rows))
		require.NoError(rt, err)
		require.NoError(rt, chosen.Append(all, rows))
		want, err := chosen.MiniBatch()
		require.NoError(rt, err)

		memory := rapid.Uint64Range(100<<10, 2<<20).Draw(rt, "memory")
		o := processor.Options{Streams: 1, Sync: rapid.Bool().Draw(rt, "sync"), Copy: rapid.Bool().Draw(rt, "copy"),
			SLM: memory, StreamMemory: rapid.Uint64Range(0, memory/2).Draw(rt, "stream memory")}
		f := processortest.NewFlash(memory, 512)
		f.Mapped = rapid.Bool().Draw(rt, "mapped")
		drive, err := processor.Start(context.Background(), f, prog, schema, o)
		require.NoError(rt, err)
		defer drive.Close()
		reference, err := cpu.NewReference(prog, schema)
		require.NoError(rt, err)
		for _, engine := range []struct {
			name      string
			processor processor.Processor
			partition *partition.Partition
		}{
			{"cpu", processortest.OnCPU(t, prog, schema, o), processortest.Open(t, data, rapid.Bool().Draw(rt, "direct"))},
			{"drive", drive, processortest.Place(t, data, f.Put(rng, data, 0, 1+rng.IntN(3)))},
			{"reference", reference, whole},
		} {
			run.Partition = engine.partition
			got, err := processortest.Collect(processor.WithSelections(engine.processor), run)
			if slm := (*slicer.MemoryError)(nil); errors.As(err, &slm) {
				continue
			}
			require.NoError(rt, err, engine.name)
			require.Equal(rt, sizesOfRun(run), sizesOf(got), engine.name)
			require.Empty(rt, tensor.Diff(want, processortest.Join(rt, got)), engine.name)
		}
	})
}

// TestFirstBatchInMoreMemory begins streams in memory that holds a mini-batch of one row and none of 200. The stream
// goes on in the rest of its memory at the mini-batch that does not fit, the first or a later one, and cuts the same
// mini-batches there.
func TestFirstBatchInMoreMemory(t *testing.T) {
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 600, Group: 1 << 20, Page: 1 << 10, Seed: 8})
	prog, schema := processortest.Fixed()
	part := processortest.Open(t, data, true)
	for _, first := range []int{0, 1, 190} {
		run := processor.Run{Partition: part, Rows: part.Rows, Batch: 200, FirstBatch: first}
		small := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 8 << 10, Streams: 1})
		got, err := processortest.Collect(small, run)
		var short *slicer.MemoryError
		require.ErrorAs(t, err, &short)
		if first == 1 {
			require.Equal(t, []int{1}, sizesOf(got), "what fits before the stream goes on")
		} else {
			require.Empty(t, got)
		}
		enough := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 4 << 20, Streams: 1, StreamMemory: 6 << 10})
		got = processortest.MiniBatches(t, enough, run)
		require.Equal(t, sizesOfRun(run), sizesOf(got))
		processortest.RequireSame(t, processortest.Reference(t, prog, schema, run), got)
	}
}

// TestFirstBatchBounds opens runs whose first mini-batch is out of range, or just inside, on every processor that
// checks it.
func TestFirstBatchBounds(t *testing.T) {
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 100, Group: 50, Page: 1 << 10, Seed: 62})
	part := processortest.Open(t, data, true)
	prog, schema := processortest.Fixed()
	reference, err := cpu.NewReference(prog, schema)
	require.NoError(t, err)
	engine := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 1 << 20, Streams: 1})
	for name, p := range map[string]struct {
		processor processor.Processor
		selected  *selection.Rows
	}{
		"engine":     {engine, nil},
		"reference":  {reference, nil},
		"selections": {processor.WithSelections(engine), selectRows(t, part, func(row int) bool { return row%2 == 0 })},
	} {
		for first, sizes := range map[int][]int{-1: nil, 0: {10, 10, 10, 5}, 1: {1, 10, 10, 10, 4}, 10: {10, 10, 10, 5},
			11: nil} {
			run := processor.Run{Partition: part, Rows: 35, Batch: 10, FirstBatch: first, Selected: p.selected}
			got, err := processortest.Collect(p.processor, run)
			if sizes == nil {
				require.ErrorIs(t, err, processor.ErrFirstBatch, "%s, %d", name, first)
				require.ErrorContains(t, err, fmt.Sprintf("%d rows, want 0 to the batch of 10", first))
				continue
			}
			require.NoError(t, err, "%s, %d", name, first)
			require.Equal(t, sizes, sizesOf(got), "%s, %d", name, first)
		}
		run := processor.Run{Partition: part, Rows: 3, Batch: 10, FirstBatch: 7, Selected: p.selected}
		require.Equal(t, []int{3}, sizesOf(processortest.MiniBatches(t, p.processor, run)), name)
	}
}

// TestFirstBatchOfSelectedRowsIsNotCopied selects every row: the mini-batches are then those that the engine made, with
// the engine's memory, although the first is short.
func TestFirstBatchOfSelectedRowsIsNotCopied(t *testing.T) {
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 100, Group: 50, Page: 1 << 10, Seed: 62})
	part := processortest.Open(t, data, true)
	prog, schema := processortest.Fixed()
	p := processor.WithSelections(processortest.OnCPU(t, prog, schema, processor.Options{SLM: 8 << 20, Streams: 1}))
	s, err := p.Open(t.Context(), processor.Run{Partition: part, First: 5, Rows: 33, Batch: 10, FirstBatch: 3,
		Selected: selectRows(t, part, func(int) bool { return true })})
	require.NoError(t, err)
	defer s.Close()
	for range 4 {
		mb, err := s.Next(t.Context())
		require.NoError(t, err)
		require.True(t, mb.Lent())
		mb.Release()
	}
	_, err = s.Next(t.Context())
	require.ErrorIs(t, err, io.EOF)
}
