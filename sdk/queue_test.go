package sdk

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/sdk/processor"
)

// slowConn is a connection whose commands complete when the test lets them, or when their context ends.
type slowConn struct {
	gate    chan struct{}
	running atomic.Int32
	most    atomic.Int32
}

func (c *slowConn) IO(ctx context.Context, cmd *nvme.Command, _ []byte) (nvme.Completion, error) {
	n := c.running.Add(1)
	defer c.running.Add(-1)
	m := c.most.Load()
	for n > m && !c.most.CompareAndSwap(m, n) {
		m = c.most.Load()
	}
	select {
	case <-c.gate:
		cpl := nvme.NewCompletion(cmd.CID(), nvme.Success)
		cpl.SetResult(cmd.QW(10))
		return cpl, nil
	case <-ctx.Done():
		return nvme.Completion{}, ctx.Err()
	}
}

func (c *slowConn) Admin(ctx context.Context, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	return c.IO(ctx, cmd, data)
}
func (c *slowConn) Close() error { return nil }

func numbered(i int) *nvme.Command {
	cmd := nvme.Flush(1)
	cmd.SetQW(10, uint64(i))
	return &cmd
}

func TestQueueDepthIsBounded(t *testing.T) {
	c := &slowConn{gate: make(chan struct{})}
	q := newQueue(c, 3, nil)
	var all futures
	submitted := make(chan struct{})
	go func() {
		defer close(submitted)
		for i := range 10 {
			all = append(all, q.Submit(t.Context(), numbered(i), nil))
		}
	}()
	select {
	case <-submitted:
		t.Fatal("ten commands went into a queue of three")
	case <-time.After(20 * time.Millisecond):
	}
	close(c.gate)
	<-submitted
	require.NoError(t, all.wait())
	for i, f := range all {
		cpl, err := f.Wait()
		require.NoError(t, err)
		assert.Equal(t, uint64(i), cpl.Result())
	}
	assert.LessOrEqual(t, c.most.Load(), int32(3))
	require.NoError(t, q.Close())
	assert.Equal(t, DefaultDepth, newQueue(c, 0, nil).Depth())
}

func TestQueueContext(t *testing.T) {
	c := &slowConn{gate: make(chan struct{})}
	q := newQueue(c, 1, nil)
	ctx, cancel := context.WithCancel(t.Context())
	first := q.Submit(ctx, numbered(1), nil)
	waiting, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	_, err := q.Submit(waiting, numbered(2), nil).Wait()
	require.ErrorIs(t, err, context.DeadlineExceeded, "no room in time")
	select {
	case <-first.Done():
		t.Fatal("completed before it could")
	default:
	}
	cancel()
	_, err = first.Wait()
	require.ErrorIs(t, err, context.Canceled)
	_, err = q.Submit(ctx, numbered(3), nil).Wait()
	require.ErrorIs(t, err, context.Canceled, "ended before it was submitted")
	require.NoError(t, q.Close())
}

func TestQueueClose(t *testing.T) {
	leaks.Check(t)
	c := &slowConn{gate: make(chan struct{})}
	q := newQueue(c, 2, nil)
	running := futures{q.Submit(t.Context(), numbered(1), nil), q.Submit(t.Context(), numbered(2), nil)}
	waits := make(chan error, 1)
	go func() {
		_, err := q.Submit(t.Context(), numbered(3), nil).Wait()
		waits <- err
	}()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		assert.NoError(t, q.Close())
	}()
	require.ErrorIs(t, <-waits, ErrClosed, "one that waits for room is turned away")
	select {
	case <-closed:
		t.Fatal("closed while commands run")
	case <-time.After(10 * time.Millisecond):
	}
	close(c.gate)
	<-closed
	require.NoError(t, running.wait())
	_, err := q.Submit(t.Context(), numbered(4), nil).Wait()
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, q.Close())
}

func TestQueueManySubmittersAndAClose(t *testing.T) {
	c := &slowConn{gate: make(chan struct{})}
	close(c.gate)
	q := newQueue(c, 4, nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 500 {
				if _, err := q.Submit(context.Background(), numbered(i), nil).Wait(); err != nil {
					assert.True(t, errors.Is(err, ErrClosed))
					return
				}
			}
		})
	}
	require.NoError(t, q.Close())
	wg.Wait()
}

// panicking is a connection of a driver in this process that has a bug.
type panicking struct{ slowConn }

func (*panicking) IO(context.Context, *nvme.Command, []byte) (nvme.Completion, error) {
	panic("a bug in a driver")
}

func TestAConnectionThatPanicsFailsItsCommand(t *testing.T) {
	q := newQueue(&panicking{}, 1, nil)
	for range 3 { // a token is given back
		_, err := q.Submit(t.Context(), numbered(1), nil).Wait()
		require.ErrorIs(t, err, processor.ErrPanic)
		require.ErrorContains(t, err, "a bug in a driver")
	}
	_, err := inBackground(func() (nvme.Completion, error) { panic("another") }).Wait()
	require.ErrorIs(t, err, processor.ErrPanic)
	require.NoError(t, q.Close())
}
