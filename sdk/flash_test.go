package sdk_test

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

// flash is a target that behaves as a drive: bytes lie on a device, in blocks, in extents, and get into memory by moves
// only. It can fail, hang and flip bytes.
type flash struct {
	target.Target
	device []byte
	block  uint64
	mapped bool

	mu    sync.Mutex // guards what follows
	moved uint64     // bytes, as a drive counts them
	moves int
	execs int
	fail  func(exec int) error                              // before an execution
	after func(t target.Target, x *target.Execution, n int) // between moves and execution
	hang  chan struct{}                                     // executions wait for it, or for ctx
}

func newFlash(memory uint64, block uint64) *flash {
	target := cpu.NewTarget(cpu.Options{Threads: 4, Processor: processor.Options{SLM: memory}})
	return &flash{Target: target, block: block, mapped: true}
}

func (f *flash) Limits() target.Limits {
	l := f.Target.Limits()
	l.Engine, l.Block, l.Device = "flash", f.block, true
	return l
}

func (f *flash) Direct(*partition.Partition) bool { return false }

func (f *flash) View(s target.Span) ([]byte, bool) {
	if !f.mapped {
		return nil, false
	}
	return f.Target.View(s)
}

func (f *flash) Execute(ctx context.Context, x *target.Execution) (target.Outcome, error) {
	f.mu.Lock()
	f.execs++
	n, fail, after, hang := f.execs, f.fail, f.after, f.hang
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
		if m.From%f.block != 0 || m.Len%f.block != 0 || m.Len == 0 || m.From+m.Len > uint64(len(f.device)) {
			return target.Outcome{}, fmt.Errorf("move %+v: no whole blocks of the device", m)
		}
		if in := x.Ranges[target.RangeInput]; m.To < in.Addr || m.To+m.Len > in.End() {
			return target.Outcome{}, fmt.Errorf("move %+v goes past the input %+v", m, in)
		}
		if err := f.Target.Store(ctx, m.To, f.device[m.From:m.From+m.Len]); err != nil {
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

func (f *flash) counted() (bytes uint64, moves, execs int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.moved, f.moves, f.execs
}

// put lays data out on the device in pieces of whole blocks, the first of them beginning phase bytes into a block, and
// returns the extents.
func (f *flash) put(rng *rand.Rand, data []byte, phase uint64, pieces int) (extents []partition.Extent) {
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
		f.device = append(f.device, make([]byte, gap)...)
		if at == 0 {
			f.device = append(f.device, make([]byte, phase)...)
		}
		extents = append(extents, partition.Extent{Offset: int64(at), Device: int64(len(f.device)), Len: int64(n)})
		f.device = append(f.device, data[at:at+n]...)
		at += n
	}
	for uint64(len(f.device))%f.block != 0 {
		f.device = append(f.device, 0xee)
	}
	return extents
}

// start makes a processor of the flash; its reader fails, so that every byte in memory came by moves.
func (f *flash) start(
	t testing.TB, prog *program.Program, schema *tensor.Schema, o processor.Options,
) processor.Processor {
	p, err := processor.Start(context.Background(), f, prog, schema, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}
