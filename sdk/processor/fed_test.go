package processor_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// countedTarget counts the large loads that overlap an execution of another mini-batch.
type countedTarget struct {
	target.Target
	large uint64 // bytes of a load that counts

	mu       sync.Mutex
	output   target.Span   // of the execution that began last
	began    chan struct{} // closed and renewed when an execution begins
	overlaps int
}

// Execute implements target.Target.
func (c *countedTarget) Execute(ctx context.Context, x *target.Execution) (target.Outcome, error) {
	c.mu.Lock()
	c.output = x.Ranges[target.RangeOutput]
	close(c.began)
	c.began = make(chan struct{})
	c.mu.Unlock()
	return c.Target.Execute(ctx, x)
}

// Load implements target.Target. A large load waits until an execution that writes elsewhere has begun. No execution
// follows the last mini-batch, whose load waits until its patience ends.
func (c *countedTarget) Load(ctx context.Context, addr uint64, b []byte) error {
	if uint64(len(b)) >= c.large {
		elsewhere := func() (bool, <-chan struct{}) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if addr-c.output.Addr < c.output.Len {
				return false, c.began
			}
			c.overlaps++
			return true, nil
		}
		patience := time.After(time.Second)
		for overlaps, began := elsewhere(); !overlaps; overlaps, began = elsewhere() {
			select {
			case <-began:
				continue
			case <-patience:
			}
			break
		}
	}
	return c.Target.Load(ctx, addr, b)
}

// View implements target.Target.
func (c *countedTarget) View(target.Span) ([]byte, bool) { return nil, false }

// fedMemory presents the CPU's memory as a drive's memory. The host stores partitions without extents in the memory.
type fedMemory struct{ *processortest.Flash }

// Limits implements target.Target.
func (f fedMemory) Limits() target.Limits {
	l := f.Flash.Limits()
	l.Device, l.Host, l.HostBlock = true, true, 4
	return l
}

// Execute implements target.Target. It carries out the slice's moves and then the moves ahead.
func (f fedMemory) Execute(ctx context.Context, x *target.Execution) (target.Outcome, error) {
	store := func(moves []target.Move) error {
		for _, m := range moves {
			b := make([]byte, m.Len)
			if _, err := x.Partition.ReadAt(b, int64(m.From)); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			if err := f.Store(ctx, m.To, b); err != nil {
				return err
			}
		}
		return nil
	}
	// All moves come before the execution, so that a move ahead that wrote over a window of this slice would show.
	if err := errors.Join(store(x.Moves), store(x.Ahead)); err != nil {
		return target.Outcome{}, err
	}
	y := *x
	y.Moves, y.Ahead = nil, nil
	return f.Flash.Execute(ctx, &y)
}

// TestFetchesOverlapExecutions has the fetch of a mini-batch wait until a slice of the next mini-batch begins.
func TestFetchesOverlapExecutions(t *testing.T) {
	l := processortest.Layout{Rows: 15_000, Group: 15_000, Page: 2 << 10, Seed: 5}
	data := processortest.WriteParquet(t, l)
	prog, schema := processortest.Fixed()
	run := processor.Run{Partition: processortest.Open(t, data, false), Rows: int64(l.Rows), Batch: 500}
	want := processortest.Reference(t, prog, schema, run)
	c := &countedTarget{Target: fedMemory{processortest.NewFlash(4<<20, 512)}, large: 4000, began: make(chan struct{})}
	p, err := processor.Start(t.Context(), c, prog, schema, processor.Options{Streams: 1})
	require.NoError(t, err)
	processortest.RequireSame(t, want, processortest.MiniBatches(t, p, run))
	assert.Greater(t, c.overlaps, len(want)/2, "of %d mini-batches", len(want))
	require.NoError(t, p.Close())
}

// TestDisklessDraws runs drawn files, rows, batches and memories through a target that is fed, and compares with the
// reference.
func TestDisklessDraws(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range 30 {
		l := processortest.Layout{
			Rows: 500 + rng.IntN(3000), Group: 200 + rng.IntN(2000), Page: 256 << rng.IntN(6), Seed: rng.Uint64(),
		}
		if rng.IntN(2) == 0 {
			l.Codec = &pq.Snappy
		}
		data := processortest.WriteParquet(t, l)
		build := []func() (*program.Program, *tensor.Schema){processortest.Jagged, processortest.Fixed}[rng.IntN(2)]
		prog, schema := build()
		first := int64(rng.IntN(l.Rows - 1))
		run := processor.Run{
			Partition: processortest.Open(t, data, true), First: first, Rows: 1 + rng.Int64N(int64(l.Rows)-first),
			Batch: 1 + rng.IntN(400),
		}
		want := processortest.Reference(t, prog, schema, run)
		for memory := uint64(120 << 10); ; memory *= 2 {
			fed := fedMemory{processortest.NewFlash(memory, 512)}
			p, err := processor.Start(t.Context(), fed, prog, schema, processor.Options{})
			require.NoError(t, err)
			run.Partition = processortest.Open(t, data, false)
			got, err := processortest.Collect(p, run)
			require.NoError(t, p.Close())
			if err == nil {
				processortest.RequireSame(t, want, got)
				break
			}
			require.Less(t, memory, uint64(64<<20), "%d: %v", i, err)
		}
	}
}
