package cpu_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/target"
)

// rendezvous is a partition elsewhere whose reads wait until two are under way.
type rendezvous struct {
	io.ReaderAt
	mu   sync.Mutex
	here int
	both chan struct{} // closed when two reads are under way
	fail error
}

func (r *rendezvous) ReadAtContext(ctx context.Context, b []byte, off int64) (int, error) {
	r.mu.Lock()
	if r.here++; r.here == 2 {
		close(r.both)
	}
	r.mu.Unlock()
	select {
	case <-r.both:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	if r.fail != nil && off > 0 {
		return 0, r.fail
	}
	return r.ReadAt(b, off)
}

// TestWindowsFromElsewhereAreReadTogether checks that the windows of a slice are requested at once, before the slice
// takes a thread. A window that fails fails the slice, and the end of the context ends the waiting.
func TestWindowsFromElsewhereAreReadTogether(t *testing.T) {
	data := rows(10)
	prepare := func(fail error) (target.Target, *target.Execution) {
		r := &rendezvous{ReaderAt: bytes.NewReader(data), both: make(chan struct{}), fail: fail}
		p, err := partition.Open(t.Context(), "p", r, int64(len(data)), program.CriteoBinary, partition.Options{})
		require.NoError(t, err)
		return cpu.NewTarget(cpu.Options{}), &target.Execution{Partition: p, Moves: []target.Move{
			{From: 0, Len: 100, To: 0}, {From: 200, Len: 100, To: 100},
		}}
	}
	far, x := prepare(nil)
	_, err := far.Execute(t.Context(), x) // the empty program fails in its state, not here
	require.NoError(t, err)
	got, ok := far.View(target.Span{Len: 200})
	require.True(t, ok)
	assert.Equal(t, data[:100], got[:100])
	assert.Equal(t, data[200:300], got[100:])

	cut := errors.New("cut")
	far, x = prepare(cut)
	_, err = far.Execute(t.Context(), x)
	require.ErrorIs(t, err, cut)

	far, x = prepare(nil)
	x.Moves = append(x.Moves[:1:1], target.Move{From: 0, Len: 10, To: 1 << 40})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cut)
	_, err = far.Execute(ctx, x) // one waits for another that never comes
	require.ErrorIs(t, err, cut)
}
