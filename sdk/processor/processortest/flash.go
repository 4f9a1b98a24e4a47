package processortest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// Flash is a target that behaves as a drive: bytes lie on a device, in blocks and extents, and only moves bring them
// into memory. A Flash can fail, hang and change bytes. Its fields are set before the first stream is opened; SetFail
// may be called later.
type Flash struct {
	target.Target
	Device []byte
	Mapped bool                                              // the memory is mapped, so that View gives it
	Fail   func(exec int) error                              // called before an execution, with its number from 1
	After  func(t target.Target, x *target.Execution, n int) // called between the moves and the execution
	Hang   chan struct{}                                     // executions wait until it is closed, or their context ends

	block uint64 // bytes of a block of the device

	mu    sync.Mutex // guards Fail and what follows
	moved uint64     // bytes, as a drive counts them
	moves int
	execs int
}

// NewFlash returns a Flash with bytes of memory, an empty device of such blocks, and engine threads of the CPU.
func NewFlash(memory uint64, block uint64) *Flash {
	target := cpu.NewTarget(cpu.Options{Threads: 4, Processor: processor.Options{SLM: memory}})
	return &Flash{Target: target, block: block, Mapped: true}
}

// Limits implements target.Target.
func (f *Flash) Limits() target.Limits {
	l := f.Target.Limits()
	l.Engine, l.Block, l.Device = "flash", f.block, true
	return l
}

// Direct implements target.Target. No partition lies in memory.
func (f *Flash) Direct(*partition.Partition) bool { return false }

// View implements target.Target.
func (f *Flash) View(s target.Span) ([]byte, bool) {
	if !f.Mapped {
		return nil, false
	}
	return f.Target.View(s)
}

// SetFail replaces Fail while streams are open.
func (f *Flash) SetFail(fail func(exec int) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Fail = fail
}

// Execute implements target.Target. It checks moves and ranges as a drive does.
func (f *Flash) Execute(ctx context.Context, x *target.Execution) (target.Outcome, error) {
	f.mu.Lock()
	f.execs++
	n, fail, after, hang := f.execs, f.Fail, f.After, f.Hang
	f.mu.Unlock()
	if fail != nil {
		if err := fail(n); err != nil {
			return target.Outcome{}, err
		}
	}
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return target.Outcome{}, ctx.Err()
		}
	}
	for _, m := range x.Moves {
		if m.From%f.block != 0 || m.Len%f.block != 0 || m.Len == 0 || m.From+m.Len > uint64(len(f.Device)) {
			return target.Outcome{}, fmt.Errorf("move bytes %d+%d of the device to %d: these are not whole blocks of it",
				m.From, m.Len, m.To)
		}
		if in := x.Ranges[target.RangeInput]; m.To < in.Addr || m.To+m.Len > in.End() {
			return target.Outcome{}, fmt.Errorf("move %d bytes to %d: the input has bytes %d+%d", m.Len, m.To, in.Addr, in.Len)
		}
		if err := f.Target.Store(ctx, m.To, f.Device[m.From:m.From+m.Len]); err != nil {
			return target.Outcome{}, err
		}
		f.mu.Lock()
		f.moved += m.Len
		f.moves++
		f.mu.Unlock()
	}
	for i, a := range x.Ranges {
		for _, b := range x.Ranges[:i] {
			if a.Len > 0 && b.Len > 0 && a.Addr < b.End() && b.Addr < a.End() {
				return target.Outcome{}, errors.New("ranges overlap")
			}
		}
	}
	if after != nil {
		after(f.Target, x, n)
	}
	y := *x
	y.Moves = nil
	return f.Target.Execute(ctx, &y)
}

// Counted returns the bytes moved, the moves and the executions so far.
func (f *Flash) Counted() (bytes uint64, moves, execs int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.moved, f.moves, f.execs
}

// Put lays data out on the device in pieces of whole blocks and returns their extents. The first piece begins phase
// bytes into a block.
func (f *Flash) Put(rng *rand.Rand, data []byte, phase uint64, pieces int) (extents []partition.Extent) {
	at := 0
	for at < len(data) {
		n := len(data) - at
		if pieces > 1 {
			whole := (1 + rng.IntN(len(data)/pieces/int(f.block)+1)) * int(f.block)
			if at == 0 {
				whole -= int(phase)
			}
			n = min(n, whole)
		}
		gap := rng.IntN(3) * int(f.block)
		f.Device = append(f.Device, make([]byte, gap)...)
		if at == 0 {
			f.Device = append(f.Device, make([]byte, phase)...)
		}
		extents = append(extents, partition.Extent{Offset: int64(at), Device: int64(len(f.Device)), Len: int64(n)})
		f.Device = append(f.Device, data[at:at+n]...)
		at += n
	}
	for uint64(len(f.Device))%f.block != 0 {
		f.Device = append(f.Device, 0xee)
	}
	return extents
}

// Start makes a processor of the flash, and closes it after the test.
func (f *Flash) Start(
	t testing.TB, prog *program.Program, schema *tensor.Schema, o processor.Options,
) processor.Processor {
	p, err := processor.Start(context.Background(), f, prog, schema, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}
