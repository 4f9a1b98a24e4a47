package inputqueue

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// batchOf returns a mini-batch of n label floats (4n bytes) with a number.
func batchOf(number uint64, n int) *tensor.MiniBatch {
	mb := tensor.New(&tensor.Schema{Label: true}, n, nil)
	mb.Label = make([]float32, n)
	mb.Name.Number = number
	return mb
}

// whole returns the only fragment of a mini-batch of a plan in which every mini-batch has one.
func whole(number uint64) dataset.Fragment {
	return dataset.Fragment{Number: number, MiniBatch: number}
}

// tryPut puts and reports whether there was room at once.
func tryPut(t *testing.T, q *Queue, mb *tensor.MiniBatch) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := q.Put(ctx, whole(mb.Name.Number), mb)
	if err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	return err == nil
}

func TestQueueBoundOneBelowAtAndAbove(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit int64
		fits  bool
	}{{"one below", 79, false}, {"at", 80, true}, {"one above", 81, true}} {
		t.Run(c.name, func(t *testing.T) {
			q := New(c.limit, 0, nil, time.Now)
			require.True(t, tryPut(t, q, batchOf(0, 10)))
			assert.Equal(t, c.fits, tryPut(t, q, batchOf(1, 10)))
		})
	}
}

func TestQueueAdmitsTheOversizedAlone(t *testing.T) {
	q := New(8, 0, nil, time.Now)
	require.True(t, tryPut(t, q, batchOf(0, 100)))
	assert.False(t, tryPut(t, q, batchOf(1, 1)))
	_, err := q.Get(t.Context())
	require.NoError(t, err)
	assert.True(t, tryPut(t, q, batchOf(1, 1)))
}

func TestQueueInPlanOrder(t *testing.T) {
	acked := map[uint64]bool{1: true}
	after := func(n uint64) uint64 {
		n++
		for acked[n] {
			n++
		}
		return n
	}
	q := New(48, 0, after, time.Now)
	require.True(t, tryPut(t, q, batchOf(3, 10)))
	assert.False(t, tryPut(t, q, batchOf(4, 10)), "no room for what is not due")
	require.True(t, tryPut(t, q, batchOf(0, 10)), "what is due is always admitted")
	mb, err := q.Get(t.Context())
	require.NoError(t, err)
	require.Zero(t, mb.Name.Number)
	require.True(t, tryPut(t, q, batchOf(2, 10)), "1 was acknowledged, so 2 is due")
	q.Close(nil)
	for _, want := range []uint64{2, 3} {
		mb, err := q.Get(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, mb.Name.Number)
	}
	_, err = q.Get(t.Context())
	assert.ErrorIs(t, err, io.EOF)
}

func TestQueueDeliversWhatItHoldsBeforeTheError(t *testing.T) {
	q := New(1<<20, 0, nil, time.Now)
	require.True(t, tryPut(t, q, batchOf(7, 1)))
	boom := errors.New("boom")
	q.Close(boom)
	q.Close(nil)
	mb, err := q.Get(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 7, mb.Name.Number)
	_, err = q.Get(t.Context())
	require.ErrorIs(t, err, boom)
	require.ErrorIs(t, q.Put(t.Context(), whole(8), batchOf(8, 1)), boom)
}

func TestQueueCountsStallsDepthAndBlocking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(40, 0, nil, time.Now)
		go func() {
			time.Sleep(2 * time.Second) // the first wait
			assert.NoError(t, q.Put(t.Context(), whole(0), batchOf(0, 10)))
			assert.NoError(t, q.Put(t.Context(), whole(1), batchOf(1, 10))) // enters when 0 is taken, at once
			time.Sleep(5 * time.Second)
			assert.NoError(t, q.Put(t.Context(), whole(2), batchOf(2, 10)))
			assert.NoError(t, q.Put(t.Context(), whole(3), batchOf(3, 10))) // enters when 2 is taken, and waits 3 s in the queue
			assert.NoError(t, q.Put(t.Context(), whole(4), batchOf(4, 10))) // is blocked for these 3 s
			q.Close(nil)
		}()
		get := func(want uint64) {
			mb, err := q.Get(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, mb.Name.Number)
		}
		get(0)
		synctest.Wait()
		time.Sleep(time.Second)
		get(1) // waited 1 s in the queue
		get(2) // stalls 4 s
		synctest.Wait()
		time.Sleep(3 * time.Second)
		assert.Equal(t, 1, q.Statistics().Waiters)
		get(3)
		synctest.Wait()
		get(4)
		_, err := q.Get(t.Context())
		require.ErrorIs(t, err, io.EOF)
		s := q.Statistics()
		assert.Equal(t, 2*time.Second, s.FirstWait)
		assert.Equal(t, 4*time.Second, s.Stall)
		assert.Equal(t, 1, s.Stalls)
		assert.EqualValues(t, 40, s.MaxBytes)
		assert.Zero(t, s.Depth)
		assert.Zero(t, s.Waiters)
		assert.Equal(t, 3*time.Second, s.Blocked, "4 waited for 3's room")
		assert.Equal(t, 4*time.Second, s.DepthTime, "one mini-batch waited 1 s, one 3 s")
	})
}

func TestQueueDrainReleases(t *testing.T) {
	released := 0
	q := New(1<<20, 0, nil, time.Now)
	mb := tensor.New(&tensor.Schema{}, 0, func() { released++ })
	require.True(t, tryPut(t, q, mb))
	q.Close(nil)
	q.Drain()
	assert.Equal(t, 1, released)
}

// TestReserveLetsWhatHasComePass: room is reserved for a mini-batch on its way. Neither the mini-batch that is due nor
// a mini-batch that the trainer has had waits for room; any other waits until room is released.
func TestReserveLetsWhatHasComePass(t *testing.T) {
	q := New(100, 4, func(n uint64) uint64 { return n + 1 }, time.Now)
	require.NoError(t, q.Reserve(t.Context(), whole(9), 80))
	full, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, q.Reserve(full, whole(10), 80), context.DeadlineExceeded)
	require.NoError(t, q.Reserve(t.Context(), whole(4), 80), "due")
	require.NoError(t, q.Reserve(t.Context(), whole(3), 80), "came before")
	q.Release(whole(4), 80)
	q.Release(whole(3), 80)
	got := make(chan error)
	go func() { got <- q.Reserve(t.Context(), whole(10), 80) }()
	require.Eventually(t, func() bool { return q.Statistics().Waiters == 1 }, time.Minute, time.Millisecond)
	q.Release(whole(9), 80)
	require.NoError(t, <-got)
	q.Close(nil)
	require.ErrorIs(t, q.Reserve(t.Context(), whole(11), 1), io.ErrClosedPipe)
}

// TestReservedRoomIsKept: a mini-batch whose room is reserved enters at once, though the mini-batch that was due has
// filled the queue meanwhile. A larger mini-batch than was reserved waits.
func TestReservedRoomIsKept(t *testing.T) {
	q := New(100, 4, func(n uint64) uint64 { return n + 1 }, time.Now)
	size := batchOf(9, 3).Bytes()
	require.NoError(t, q.Reserve(t.Context(), whole(9), size))
	require.True(t, tryPut(t, q, batchOf(4, 24)), "due")
	require.False(t, tryPut(t, q, batchOf(8, 3)), "no room")
	require.False(t, tryPut(t, q, batchOf(9, 4)), "more than was reserved")
	require.True(t, tryPut(t, q, batchOf(9, 3)))
	q.Release(whole(9), size)
	require.False(t, tryPut(t, q, batchOf(9, 3)), "the room is given up")
	q.Close(nil)
	q.Drain()
}

// tryHold holds a fragment and reports whether there was room at once.
func tryHold(t *testing.T, q *Queue, fragment dataset.Fragment, size int64) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := q.Hold(ctx, fragment, size)
	if err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	return err == nil
}

// part returns a fragment of a mini-batch of several.
func part(number, miniBatch uint64) dataset.Fragment {
	return dataset.Fragment{Number: number, MiniBatch: miniBatch}
}

func TestFragmentsThatWaitCountInTheLimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit int64
		fits  bool
	}{{"one below", 79, false}, {"at", 80, true}, {"one above", 81, true}} {
		t.Run(c.name, func(t *testing.T) {
			q := New(c.limit, 0, nil, time.Now)
			require.True(t, tryPut(t, q, batchOf(0, 10)))
			assert.Equal(t, c.fits, tryHold(t, q, part(5, 3), 40))
			bytes := int64(40)
			if c.fits {
				bytes = 80
			}
			assert.Equal(t, bytes, q.Statistics().Bytes)
			assert.Equal(t, 1, q.Statistics().Depth)
		})
	}
}

func TestAQueueFullOfFragmentsInFreeOrder(t *testing.T) {
	q := New(40, 0, nil, time.Now)
	require.True(t, tryHold(t, q, part(1, 1), 40))
	require.True(t, tryHold(t, q, part(5, 3), 40), "there is nothing to take")
	require.NoError(t, q.Reserve(t.Context(), part(9, 6), 40), "there is nothing to take")
	require.NoError(t, q.Reserve(t.Context(), part(11, 7), 40), "fragments wait: what is on its way may not help")
	require.True(t, tryPut(t, q, batchOf(4, 10)), "there is nothing to take")
	require.False(t, tryPut(t, q, batchOf(5, 1)), "the trainer can take 4")
	require.False(t, tryHold(t, q, part(13, 8), 4), "the trainer can take 4")
	require.True(t, tryHold(t, q, part(6, 3), 40), "its partner waits")
	require.NoError(t, q.Reserve(t.Context(), part(7, 3), 40), "its partner waits")
	require.Equal(t, int64(160), q.Statistics().Bytes)

	q.PutJoined(batchOf(3, 15))
	require.Equal(t, int64(140), q.Statistics().Bytes, "80 bytes of fragments became 60")
	require.Equal(t, int64(160), q.Statistics().MaxBytes)
	for _, want := range []uint64{4, 3} {
		mb, err := q.Get(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, mb.Name.Number)
	}
	require.Equal(t, int64(40), q.Statistics().Bytes)
	require.True(t, tryPut(t, q, batchOf(5, 1)))
	q.Drain()
	require.Zero(t, q.Statistics().Bytes)
}

func TestAQueueFullOfFragmentsInPlanOrder(t *testing.T) {
	q := New(40, 2, func(n uint64) uint64 { return n + 1 }, time.Now)
	require.True(t, tryHold(t, q, part(7, 4), 40), "an empty queue admits what comes")
	require.False(t, tryHold(t, q, part(9, 5), 1), "it is not due")
	require.False(t, tryPut(t, q, batchOf(5, 1)), "it is not due")
	require.True(t, tryHold(t, q, part(2, 2), 40), "due")
	require.True(t, tryHold(t, q, part(3, 2), 40), "due")
	q.PutJoined(batchOf(2, 20))
	mb, err := q.Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(2), mb.Name.Number)
	require.True(t, tryHold(t, q, part(4, 3), 40), "due")
	require.True(t, tryHold(t, q, part(8, 4), 40), "its partner waits")
	q.PutJoined(batchOf(4, 20))
	require.False(t, tryHold(t, q, part(9, 5), 1), "it is not due")
	require.NoError(t, q.Reserve(t.Context(), part(5, 3), 40), "due")
	require.True(t, tryHold(t, q, part(5, 3), 40))
	q.Release(part(5, 3), 40)
	q.PutJoined(batchOf(3, 20))
	for _, want := range []uint64{3, 4} {
		mb, err := q.Get(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, mb.Name.Number)
	}
	require.Zero(t, q.Statistics().Bytes)
}

// TestAFragmentWithReservedRoomDoesNotWait holds a fragment of as many bytes as were reserved, and not of one more.
func TestAFragmentWithReservedRoomDoesNotWait(t *testing.T) {
	q := New(40, 0, nil, time.Now)
	require.NoError(t, q.Reserve(t.Context(), part(8, 5), 30))
	require.True(t, tryPut(t, q, batchOf(0, 10)))
	require.False(t, tryHold(t, q, part(8, 5), 31))
	require.False(t, tryHold(t, q, part(9, 5), 30), "the room is that of another fragment")
	require.True(t, tryHold(t, q, part(8, 5), 30))
	q.Release(part(8, 5), 30)
}
