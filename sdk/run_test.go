package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/tensor"
)

// collect runs a run and returns copies of its mini-batches.
func collect(p processor.Processor, run processor.Run) (out []*tensor.MiniBatch, err error) {
	ctx := context.Background()
	s, err := p.Open(ctx, run)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for {
		m, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, m.Clone())
		m.Release()
	}
}

// same demands that two runs gave the same mini-batches, bit for bit.
func same(t require.TestingT, want, got []*tensor.MiniBatch, msg ...any) {
	require.Len(t, got, len(want), msg...)
	for i := range want {
		require.Empty(t, tensor.Diff(want[i], got[i]), append([]any{fmt.Sprintf("mini-batch %d", i)}, msg...)...)
	}
}

// truth is what the reference gives.
func truth(t testing.TB, prog *program.Program, schema *tensor.Schema, run processor.Run) []*tensor.MiniBatch {
	ref, err := cpu.NewReference(prog, schema)
	require.NoError(t, err)
	return all(t, ref, run)
}

func onCPU(t testing.TB, prog *program.Program, schema *tensor.Schema, o processor.Options) processor.Processor {
	p, err := cpu.New(context.Background(), prog, schema, cpu.Options{Processor: o})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return p
}

var layouts = map[string]layout{
	"one row group":          {rows: 1000, group: 1 << 20, page: 2 << 10, seed: 1},
	"small row groups":       {rows: 700, group: 130, page: 2 << 10, version: 2, seed: 2},
	"snappy":                 {rows: 1000, group: 400, page: 1 << 10, codec: &pq.Snappy, seed: 3},
	"zstd, v2":               {rows: 900, group: 700, page: 1 << 10, codec: &pq.Zstd, version: 2, seed: 4},
	"gzip, one page":         {rows: 800, group: 1 << 20, page: 1 << 24, codec: &pq.Gzip, seed: 5},
	"one row, lz4":           {rows: 1, group: 10, page: 1 << 10, codec: &pq.Lz4Raw, seed: 6},
	"as many groups as rows": {rows: 40, group: 1, page: 1 << 10, codec: compress.Codec(&pq.Snappy), seed: 7},
}

func TestEnginesAgree(t *testing.T) {
	batches := []int{1, 64, 333, 2000}
	options := []processor.Options{{SLM: 4 << 20}, {SLM: 300 << 10, Sync: true}, {SLM: 90 << 10, Copy: true}}
	if raced {
		batches, options = []int{1, 333}, options[1:]
	}
	for name, l := range layouts {
		t.Run(name, func(t *testing.T) {
			data := write(t, l)
			for kind, build := range programs {
				prog, schema := build()
				for _, batch := range batches {
					if batch == 1 && l.rows > 100 {
						continue
					}
					first := int64(min(l.rows-1, 17))
					run := processor.Run{Partition: open(t, data, true), First: first, Rows: int64(l.rows) - first, Batch: batch}
					want := truth(t, prog, schema, run)
					for _, o := range options {
						p := onCPU(t, prog, schema, o)
						msg := fmt.Sprintf("%s, batch %d, %+v", kind, batch, o)
						for _, direct := range []bool{true, false} {
							run.Partition = open(t, data, direct)
							got, err := collect(p, run)
							if slm := (*slicer.MemoryError)(nil); errors.As(err, &slm) && o.SLM > 0 {
								assert.Greater(t, slm.Need, slm.Have)
								continue
							}
							require.NoError(t, err, msg)
							same(t, want, got, msg, direct)
						}
					}
				}
			}
		})
	}
}

// TestAnyMemory runs files of many shapes in memories of many sizes, from extents on a device of blocks: a mini-batch
// does not depend on any of that, and the bytes that the device moved are those that were planned.
func TestAnyMemory(t *testing.T) {
	kinds := []string{"fixed", "jagged", "mapped"}
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		l := layout{
			rows:    rapid.IntRange(1, 700).Draw(rt, "rows"),
			group:   rapid.SampledFrom([]int{7, 100, 400, 1 << 20}).Draw(rt, "group"),
			page:    rapid.SampledFrom([]int{200, 1000, 5000, 1 << 20}).Draw(rt, "page"),
			version: rapid.IntRange(1, 2).Draw(rt, "version"),
			codec:   rapid.SampledFrom([]compress.Codec{&pq.Uncompressed, &pq.Snappy, &pq.Zstd}).Draw(rt, "codec"),
			seed:    rng.Uint64(),
		}
		block := rapid.SampledFrom([]uint64{1, 512, 4096}).Draw(rt, "block")
		memory := rapid.Uint64Range(8<<10, 400<<10).Draw(rt, "memory")
		o := processor.Options{
			Streams:  rapid.IntRange(1, 2).Draw(rt, "streams"),
			Sync:     rapid.Bool().Draw(rt, "sync"),
			Copy:     rapid.Bool().Draw(rt, "copy"),
			Coalesce: rapid.SampledFrom([]uint64{1, 0, 1 << 20}).Draw(rt, "coalesce"),
			Gap:      rapid.SampledFrom([]uint64{0, 1000}).Draw(rt, "gap"),
		}
		kind := rapid.SampledFrom(kinds).Draw(rt, "kind")
		batch := rapid.IntRange(1, 300).Draw(rt, "batch")
		first := int64(rng.IntN(l.rows))
		data := write(t, l)

		f := newFlash(memory, block)
		f.mapped = rng.IntN(2) == 0
		extents := f.put(rng, data, uint64(rng.Int64N(int64(block)))&^511, 1+rng.IntN(4))
		part := place(t, data, extents)
		prog, schema := programs[kind]()
		p, err := processor.Start(context.Background(), f, prog, schema, o)
		if slm := (*slicer.MemoryError)(nil); errors.As(err, &slm) {
			return
		}
		require.NoError(rt, err)
		defer p.Close()
		run := processor.Run{Partition: part, First: first, Rows: 1 + rng.Int64N(int64(l.rows)-first), Batch: batch}
		want := truth(t, prog, schema, processor.Run{
			Partition: open(t, data, true), First: run.First, Rows: run.Rows, Batch: batch,
		})
		for range 2 {
			got, err := collect(p, run)
			if slm := (*slicer.MemoryError)(nil); errors.As(err, &slm) {
				require.Greater(rt, slm.Need, slm.Have)
			} else {
				require.NoError(rt, err)
				same(rt, want, got)
			}
		}
		moved, _, execs := f.counted()
		s := p.Stats()
		require.Equal(rt, s.BytesPlanned, int64(moved))
		require.Equal(rt, s.Slices, int64(execs))
	})
}
