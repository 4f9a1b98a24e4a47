package processor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
	"github.com/millrace/millrace/sdk/slicer"
)

var layouts = map[string]processortest.Layout{
	"one row group":          {Rows: 1000, Group: 1 << 20, Page: 2 << 10, Seed: 1},
	"small row groups":       {Rows: 700, Group: 130, Page: 2 << 10, Version: 2, Seed: 2},
	"snappy":                 {Rows: 1000, Group: 400, Page: 1 << 10, Codec: &pq.Snappy, Seed: 3},
	"zstd, v2":               {Rows: 900, Group: 700, Page: 1 << 10, Codec: &pq.Zstd, Version: 2, Seed: 4},
	"gzip, one page":         {Rows: 800, Group: 1 << 20, Page: 1 << 24, Codec: &pq.Gzip, Seed: 5},
	"one row, lz4":           {Rows: 1, Group: 10, Page: 1 << 10, Codec: &pq.Lz4Raw, Seed: 6},
	"as many groups as rows": {Rows: 40, Group: 1, Page: 1 << 10, Codec: compress.Codec(&pq.Snappy), Seed: 7},
}

func TestEnginesAgree(t *testing.T) {
	batches := []int{1, 64, 333, 2000}
	options := []processor.Options{{SLM: 4 << 20}, {SLM: 300 << 10, Sync: true}, {SLM: 90 << 10, Copy: true}}
	if processortest.Raced {
		batches, options = []int{1, 333}, options[1:]
	}
	for name, l := range layouts {
		t.Run(name, func(t *testing.T) {
			data := processortest.WriteParquet(t, l)
			for kind, build := range processortest.Programs() {
				prog, schema := build()
				for _, batch := range batches {
					if batch == 1 && l.Rows > 100 {
						continue
					}
					first := int64(min(l.Rows-1, 17))
					run := processor.Run{
						Partition: processortest.Open(t, data, true), First: first, Rows: int64(l.Rows) - first, Batch: batch,
					}
					want := processortest.Reference(t, prog, schema, run)
					for _, o := range options {
						p := processortest.OnCPU(t, prog, schema, o)
						msg := fmt.Sprintf("%s, batch %d, %+v", kind, batch, o)
						for _, direct := range []bool{true, false} {
							run.Partition = processortest.Open(t, data, direct)
							got, err := processortest.Collect(p, run)
							if slm := (*slicer.MemoryError)(nil); errors.As(err, &slm) && o.SLM > 0 {
								assert.Greater(t, slm.Need, slm.Have)
								continue
							}
							require.NoError(t, err, msg)
							processortest.RequireSame(t, want, got, msg, direct)
						}
					}
				}
			}
		})
	}
}

// TestAnyMemory runs files of many shapes in memories of many sizes, from extents on a device of blocks. The
// mini-batches are the same everywhere, and the device moves as many bytes as were planned.
func TestAnyMemory(t *testing.T) {
	kinds := []string{"fixed", "jagged", "mapped", "lacking"}
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		l := processortest.Layout{
			Rows:    rapid.IntRange(1, 700).Draw(rt, "rows"),
			Group:   rapid.SampledFrom([]int{7, 100, 400, 1 << 20}).Draw(rt, "group"),
			Page:    rapid.SampledFrom([]int{200, 1000, 5000, 1 << 20}).Draw(rt, "page"),
			Version: rapid.IntRange(1, 2).Draw(rt, "version"),
			Codec:   rapid.SampledFrom([]compress.Codec{&pq.Uncompressed, &pq.Snappy, &pq.Zstd}).Draw(rt, "codec"),
			Seed:    rng.Uint64(),
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
		first := int64(rng.IntN(l.Rows))
		data := processortest.WriteParquet(t, l)

		f := processortest.NewFlash(memory, block)
		f.Mapped = rng.IntN(2) == 0
		extents := f.Put(rng, data, uint64(rng.Int64N(int64(block)))&^511, 1+rng.IntN(4))
		part := processortest.Place(t, data, extents)
		prog, schema := processortest.Programs()[kind]()
		p, err := processor.Start(context.Background(), f, prog, schema, o)
		if slm := (*slicer.MemoryError)(nil); errors.As(err, &slm) {
			return
		}
		require.NoError(rt, err)
		defer p.Close()
		run := processor.Run{Partition: part, First: first, Rows: 1 + rng.Int64N(int64(l.Rows)-first), Batch: batch}
		want := processortest.Reference(t, prog, schema, processor.Run{
			Partition: processortest.Open(t, data, true), First: run.First, Rows: run.Rows, Batch: batch,
		})
		for range 2 {
			got, err := processortest.Collect(p, run)
			if slm := (*slicer.MemoryError)(nil); errors.As(err, &slm) {
				require.Greater(rt, slm.Need, slm.Have)
			} else {
				require.NoError(rt, err)
				processortest.RequireSame(rt, want, got)
			}
		}
		moved, _, execs := f.Counted()
		s := p.Stats()
		require.Equal(rt, s.BytesPlanned, int64(moved))
		require.Equal(rt, s.Slices, int64(execs))
	})
}
