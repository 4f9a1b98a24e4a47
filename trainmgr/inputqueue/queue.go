// Package inputqueue is the input queue of a job: mini-batches between the pieces that bring them and the trainer that
// takes them, bounded in bytes.
//
// # Concurrency
//
// A [Queue] may be used from any goroutine. One goroutine at a time calls Get.
//
// # Errors
//
// Put, Reserve and Get return the cause of their context's end, or the error that closed the queue.
package inputqueue

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/tensor"
)

// Queue is the input queue of one epoch.
//
// A mini-batch is admitted while the bytes in the queue, its own included, stay within the limit. An empty queue admits
// every mini-batch, so a mini-batch that is larger than the limit passes alone. In plan order the queue always admits
// the mini-batch that is due, since those behind it cannot leave before it; the queue then exceeds its limit by that
// mini-batch at most.
type Queue struct {
	limitBytes int64
	ordered    bool
	following  func(number uint64) uint64 // in plan order: the number that is due after this one
	now        func() time.Time

	mu           sync.Mutex
	changed      wait.Broadcast // It wakes waits whenever a field below changes.
	batches      map[uint64]*tensor.MiniBatch
	arrived      []uint64 // in free order: the numbers in the order of arrival
	due          uint64   // in plan order: the number that get waits for
	bytes        int64
	awaitedBytes int64            // reserved for mini-batches that are on their way
	reserved     map[uint64]int64 // those bytes, by the mini-batch's number
	roomWaiters  int              // callers of put and reserve that wait for room
	closed       bool             // Put and reserve fail from now on
	drained      bool             // Statistics do not change any more
	closeError   error
	stats        Statistics
	depthChanged time.Time // when stats last accounted the depth
}

// Statistics are a queue's statistics.
type Statistics struct {
	Depth      int           // mini-batches in the queue now
	Bytes      int64         // Bytes counts the mini-batches that are in the queue now.
	Waiters    int           // callers that wait for room now
	MaxBytes   int64         // most bytes at once
	Stall      time.Duration // the trainer waited, after its first mini-batch
	FirstWait  time.Duration // the trainer waited for its first mini-batch
	Stalls     int           // how often the trainer waited after its first mini-batch
	Blocked    time.Duration // callers waited for room, added up
	DepthTime  time.Duration // integral of the depth over time, in mini-batches
	Elapsed    time.Duration // time that DepthTime spans
	firstTaken bool          // the trainer has taken a mini-batch
	TakenRows  uint64        // TakenRows counts the rows that the trainer has taken.
}

// DepthMean returns the mean number of mini-batches in the queue over time.
func (s *Statistics) DepthMean() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.DepthTime) / float64(s.Elapsed)
}

// New makes a queue in free order, or, with following, in plan order from due on. now is its clock.
func New(limitBytes int64, due uint64, following func(uint64) uint64, now func() time.Time) *Queue {
	q := &Queue{
		limitBytes: limitBytes, ordered: following != nil, following: following, due: due, now: now,
		batches: map[uint64]*tensor.MiniBatch{}, reserved: map[uint64]int64{},
	}
	q.depthChanged = q.now()
	return q
}

// Put waits for room and adds a mini-batch. A mini-batch whose room is reserved does not wait. If put returns an error
// the mini-batch stays the caller's.
func (q *Queue) Put(ctx context.Context, mb *tensor.MiniBatch) error {
	number, size := mb.Name.Number, mb.Bytes()
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.awaitRoom(ctx, func() bool {
		return len(q.batches) == 0 || q.bytes+size <= q.limitBytes || q.ordered && number == q.due ||
			q.reserved[number] >= size
	})
	if err != nil {
		return err
	}
	q.accountDepth()
	q.batches[number] = mb
	if !q.ordered {
		q.arrived = append(q.arrived, number)
	}
	q.bytes += size
	q.stats.MaxBytes = max(q.stats.MaxBytes, q.bytes)
	q.wakeWaiters()
	return nil
}

// Reserve waits until a mini-batch that is still to be fetched fits beside what the queue holds and what is on its
// way, and keeps room for it until release. As in put, a mini-batch passes alone, and so does the mini-batch that is
// due. A mini-batch before the due one passes too: another caller has put it meanwhile, and this caller must learn
// that before it asks for the mini-batch that is due.
func (q *Queue) Reserve(ctx context.Context, number uint64, size int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.awaitRoom(ctx, func() bool {
		alone := len(q.batches) == 0 && q.awaitedBytes == 0
		return alone || q.bytes+q.awaitedBytes+size <= q.limitBytes || q.ordered && number <= q.due
	})
	if err != nil {
		return err
	}
	q.awaitedBytes += size
	q.reserved[number] = size
	return nil
}

// Release gives up reserved room: the mini-batch is in the queue, or will not come.
func (q *Queue) Release(number uint64, size int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.awaitedBytes -= size
	delete(q.reserved, number)
	q.wakeWaiters()
}

// awaitRoom waits until fits returns true, and counts the wait as blocked. It fails when the queue is closed or ctx
// ends. q.mu is held.
func (q *Queue) awaitRoom(ctx context.Context, fits func() bool) error {
	var begin time.Time
	for !q.closed && !fits() {
		if begin.IsZero() {
			begin = q.now()
		}
		q.roomWaiters++
		err := q.awaitChange(ctx)
		q.roomWaiters--
		if err != nil {
			return err
		}
	}
	switch {
	case q.closed && q.closeError != nil:
		return q.closeError
	case q.closed:
		return io.ErrClosedPipe
	case !begin.IsZero():
		q.stats.Blocked += q.now().Sub(begin)
	}
	return nil
}

// awaitChange waits until the queue changes or ctx ends. q.mu is held before and after, and not during the wait.
func (q *Queue) awaitChange(ctx context.Context) error {
	changed := q.changed.Changed()
	q.mu.Unlock()
	defer q.mu.Lock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// Get waits for the next mini-batch and removes it. After close it returns the mini-batches that are left, and then
// the error of close, or io.EOF if that error was nil.
func (q *Queue) Get(ctx context.Context) (*tensor.MiniBatch, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var begin time.Time
	for {
		if mb := q.takeNext(); mb != nil {
			if !begin.IsZero() {
				q.accountTrainerWait(q.now().Sub(begin))
			}
			q.stats.firstTaken = true
			q.stats.TakenRows += uint64(mb.Rows)
			q.wakeWaiters()
			return mb, nil
		}
		switch {
		case q.closed && q.closeError != nil:
			return nil, q.closeError
		case q.closed:
			return nil, io.EOF
		case begin.IsZero():
			begin = q.now()
		}
		if err := q.awaitChange(ctx); err != nil {
			return nil, err
		}
	}
}

// takeNext removes the mini-batch that is next and returns it, or nil if it has not come. q.mu is held.
func (q *Queue) takeNext() *tensor.MiniBatch {
	number := q.due
	if !q.ordered {
		if len(q.arrived) == 0 {
			return nil
		}
		number = q.arrived[0]
	}
	mb, ok := q.batches[number]
	if !ok {
		return nil
	}
	q.accountDepth()
	delete(q.batches, number)
	if q.ordered {
		q.due = q.following(number)
	} else {
		q.arrived = q.arrived[1:]
	}
	q.bytes -= mb.Bytes()
	return mb
}

// DueNumber returns the number that the trainer waits for next, if the queue is in plan order.
func (q *Queue) DueNumber() (number uint64, ordered bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.due, q.ordered
}

// Close ends the queue: with nil once every mini-batch has been put, with an error if the job failed. Only the first
// Close counts.
func (q *Queue) Close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed, q.closeError = true, err
	q.wakeWaiters()
}

// Drain releases every mini-batch in the queue.
func (q *Queue) Drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.accountDepth()
	for number, mb := range q.batches {
		mb.Release()
		delete(q.batches, number)
	}
	q.arrived, q.bytes, q.drained = nil, 0, true
	q.wakeWaiters()
}

// Statistics returns the queue's statistics until now.
func (q *Queue) Statistics() Statistics {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.accountDepth()
	s := q.stats
	s.Depth, s.Bytes, s.Waiters = len(q.batches), q.bytes, q.roomWaiters
	return s
}

// accountTrainerWait counts a wait of the trainer for a mini-batch. q.mu is held.
func (q *Queue) accountTrainerWait(waited time.Duration) {
	if q.stats.firstTaken {
		q.stats.Stall += waited
		q.stats.Stalls++
	} else {
		q.stats.FirstWait = waited
	}
}

// accountDepth adds the depth since the last change to the statistics, unless the queue is drained. q.mu is held.
func (q *Queue) accountDepth() {
	if q.drained {
		return
	}
	now := q.now()
	since := now.Sub(q.depthChanged)
	q.stats.DepthTime += time.Duration(len(q.batches)) * since
	q.stats.Elapsed += since
	q.depthChanged = now
}

// wakeWaiters wakes every goroutine that waits for a change. q.mu is held.
func (q *Queue) wakeWaiters() {
	q.changed.Broadcast()
}
