package processor_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// tryMemory runs a run on a fresh flash with the given memory.
func tryMemory(t testing.TB, data []byte, kind string, memory uint64, batch int) error {
	f := processortest.NewFlash(memory, 512)
	part := processortest.Place(t, data, f.Put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
	prog, schema := processortest.Programs()[kind]()
	p, err := processor.Start(context.Background(), f, prog, schema, processor.Options{Streams: 1})
	if err != nil {
		return err
	}
	defer p.Close()
	run := processor.Run{Partition: part, Rows: part.Rows, Batch: batch}
	got, err := processortest.Collect(p, run)
	if err == nil {
		processortest.RequireSame(t, processortest.Reference(t, prog, schema, run), got)
	}
	return err
}

// TestLeastMemory follows the need that errors name to the least memory that suffices, and tries one byte less.
func TestLeastMemory(t *testing.T) {
	for name, l := range map[string]processortest.Layout{
		"pages":                 {Rows: 800, Group: 500, Page: 2 << 10, Codec: &pq.Snappy, Seed: 21},
		"a chunk in one page":   {Rows: 800, Group: 1 << 20, Page: 1 << 24, Codec: &pq.Zstd, Seed: 22},
		"nothing is compressed": {Rows: 800, Group: 1 << 20, Page: 4 << 10, Seed: 23},
	} {
		if processortest.Raced && l.Codec == nil {
			continue
		}
		for kind := range processortest.Programs() {
			t.Run(name+", "+kind, func(t *testing.T) {
				data := processortest.WriteParquet(t, l)
				memory, steps := uint64(64), 0
				var last *slicer.MemoryError
				for ; steps < 100; steps++ {
					err := tryMemory(t, data, kind, memory, 50)
					if err == nil {
						break
					}
					var slm *slicer.MemoryError
					require.ErrorAs(t, err, &slm)
					require.Equal(t, memory, slm.Have)
					require.Greater(t, slm.Need, memory, "it asks for more than there is")
					memory, last = slm.Need, slm
				}
				require.Less(t, steps, 100)
				require.NotNil(t, last)
				// The least memory that suffices lies between the memory that was too little and the memory that the error
				// demanded: the error counts a page header that was not read yet with the most bytes that a header may have.
				low, high := last.Have, memory
				for high-low > 1 {
					mid := low + (high-low)/2
					if err := tryMemory(t, data, kind, mid, 50); err == nil {
						high = mid
					} else {
						low = mid
					}
				}
				assert.Less(t, memory-high, uint64(2<<10))
				var slm *slicer.MemoryError
				require.ErrorAs(t, tryMemory(t, data, kind, high-1, 50), &slm)
				assert.Greater(t, slm.Need, high-1)
				assert.NoError(t, tryMemory(t, data, kind, high, 50))
				assert.NoError(t, tryMemory(t, data, kind, high+1, 50))
				// The column that decided is named.
				assert.Equal(t, "part-0.parquet", last.Partition)
				assert.NotEmpty(t, last.Column)
				assert.ErrorContains(t, last, last.Column)
				assert.ErrorContains(t, last, fmt.Sprint(last.Need))
			})
		}
	}
}

// TestFlippedByte changes one byte of the input range after the moves and before the execution, and so shows that the
// tensors come from this memory. Binary rows have no checksum: the byte shows in one place and nowhere else.
func TestFlippedByte(t *testing.T) {
	data := processortest.BinaryRows(64)
	prog, schema := processortest.Criteo(program.CriteoBinary, program.MalformedFail)
	run := func(flip bool) *tensor.MiniBatch {
		f := processortest.NewFlash(4<<20, 512)
		if flip {
			f.After = func(mem target.Target, x *target.Execution, _ int) {
				in, ok := mem.View(x.Ranges[target.RangeInput])
				require.True(t, ok)
				in[10*text.BinaryRow+4*(1+3)] ^= 1 // int_3 of row 10
			}
		}
		extents := f.Put(rand.New(rand.NewPCG(1, 1)), data, 0, 1)
		part := processortest.OpenText(t, data, program.CriteoBinary, partition.Options{Extents: extents})
		p := f.Start(t, prog, schema, processor.Options{Streams: 1})
		out := processortest.MiniBatches(t, p, processor.Run{Partition: part, Rows: 64, Batch: 64})
		require.Len(t, out, 1)
		return out[0]
	}
	straight, flipped := run(false), run(true)
	at := 10*text.Dense + 3
	assert.Equal(t, math.Abs(float64(straight.Dense[at]-flipped.Dense[at])), 1.0)
	flipped.Dense[at] = straight.Dense[at]
	assert.Empty(t, tensor.Diff(straight, flipped))
}

// TestFlippedPage changes bytes of a page with a checksum between the moves and the execution.
func TestFlippedPage(t *testing.T) {
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 500, Group: 1 << 20, Page: 1 << 20, Seed: 31})
	prog, schema := processortest.Fixed()
	f := processortest.NewFlash(4<<20, 512)
	part := processortest.Place(t, data, f.Put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
	f.After = func(mem target.Target, x *target.Execution, _ int) {
		in, _ := mem.View(x.Ranges[target.RangeInput])
		for i := range in {
			in[i] ^= byte(i / 64 % 2)
		}
	}
	_, err := processortest.Collect(f.Start(t, prog, schema, processor.Options{Streams: 1}),
		processor.Run{Partition: part, Rows: 500, Batch: 100})
	var bad *partition.DataError
	require.ErrorAs(t, err, &bad)
	assert.ErrorIs(t, err, partition.ErrData)
	assert.Equal(t, "cat_0", bad.Column)
	assert.Equal(t, 0, bad.RowGroup)
}

// TestFaults has a target fail at every execution in turn.
func TestFaults(t *testing.T) {
	l := processortest.Layout{Rows: 600, Group: 250, Page: 1 << 10, Seed: 41}
	data := processortest.WriteParquet(t, l)
	prog, schema := processortest.Jagged()
	broken := errors.New("it broke")
	whole := processor.Run{Partition: processortest.Open(t, data, true), Rows: 600, Batch: 100}
	want := processortest.Reference(t, prog, schema, whole)
	for _, sync := range []bool{false, true} {
		for at := 1; ; at++ {
			f := processortest.NewFlash(2<<20, 512)
			part := processortest.Place(t, data, f.Put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
			f.Fail = func(n int) error {
				if n == at {
					return broken
				}
				return nil
			}
			p := f.Start(t, prog, schema, processor.Options{Streams: 1, Sync: sync})
			run := processor.Run{Partition: part, Rows: 600, Batch: 100}
			got, err := processortest.Collect(p, run)
			if err == nil {
				require.Greater(t, at, 5)
				break
			}
			require.ErrorIs(t, err, broken)
			processortest.RequireSame(t, want[:len(got)], got, "what came before the fault is whole")
			// The next stream makes every mini-batch.
			got, err = processortest.Collect(p, run)
			require.NoError(t, err)
			processortest.RequireSame(t, want, got)
		}
	}
}

// TestMapIsReadOnce checks that the bytes of a map are moved once, however many of its features a pipeline reads.
func TestMapIsReadOnce(t *testing.T) {
	l := processortest.Layout{Rows: 3000, Group: 1000, Page: 4 << 10, Codec: &pq.Snappy, Seed: 77}
	data := processortest.WriteParquet(t, l)
	read := func(features int) processor.Stats {
		values := program.Column{Name: "lists.key_value.value", Kind: program.Int64, List: true, Part: program.MapValues}
		s := &tensor.Schema{IDs: tensor.Int64}
		for k := range features {
			values.Sinks = append(values.Sinks, program.Sink{To: program.ToSparse, Index: uint32(k)})
			values.Picks = append(values.Picks, program.Pick{Key: int64(k)})
			s.Keys = append(s.Keys, tensor.Key{Name: string(rune('a' + k)), List: true})
		}
		prog := &program.Program{Source: program.Parquet, Output: program.Output{Keys: uint32(features)},
			Columns: []program.Column{{Name: "lists.key_value.key", Kind: program.Int64, Part: program.MapKeys}, values}}
		f := processortest.NewFlash(8<<20, 512)
		part := processortest.Place(t, data, f.Put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
		p, err := processor.Start(t.Context(), f, prog, s, processor.Options{})
		require.NoError(t, err)
		defer p.Close()
		processortest.MiniBatches(t, p, processor.Run{Partition: part, Rows: 3000, Batch: 250})
		return p.Stats()
	}
	one, many := read(1), read(6)
	assert.Equal(t, one.BytesPlanned, many.BytesPlanned)
	assert.Equal(t, one.BytesIn, many.BytesIn)
	assert.Zero(t, many.BytesReread)
}
