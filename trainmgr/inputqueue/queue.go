// Package inputqueue is the input queue of a job: mini-batches between the pieces that bring them and the trainer that
// takes them, bounded in bytes.
//
// # Fragments
//
// A mini-batch whose rows lie in several splits comes in fragments. The owner of the queue keeps those that wait for
// their partners and joins them; [Queue.Hold] waits for room for such a fragment and counts its bytes, and
// [Queue.PutJoined] replaces what was held of a mini-batch by the mini-batch. The trainer can take only whole
// mini-batches, so a queue that is full of fragments must admit more:
//
//   - A fragment of a mini-batch of which a fragment is held is always admitted.
//   - In plan order every fragment of the mini-batch that is due is admitted. The owner starts splits in plan order, so
//     one of the pieces under way brings each of them.
//   - In free order, while there is no whole mini-batch to take, everything is admitted. Every piece under way goes on
//     until one of them completes a mini-batch.
//
// The queue then exceeds its limit by no more than the mini-batches of which a fragment has come and another has not,
// and one mini-batch. Its owner bounds these by the order in which splits start.
//
// # Concurrency
//
// A [Queue] may be used from any goroutine. One goroutine at a time calls Get.
//
// # Errors
//
// Put, Hold, Reserve and Get return the cause of their context's end, or the error that closed the queue.
package inputqueue

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// Queue is the input queue of one epoch.
//
// A mini-batch is admitted while the bytes in the queue, its own included, stay within the limit. An empty queue admits
// every mini-batch, so a mini-batch that is larger than the limit passes alone. In plan order the queue always admits
// the mini-batch that is due, since those behind it cannot leave before it; the queue then exceeds its limit by that
// mini-batch at most. The package comment has the rules for fragments.
type Queue struct {
	limitBytes int64
	ordered    bool
	following  func(number uint64) uint64 // in plan order: the number that is due after this one
	now        func() time.Time

	mu           sync.Mutex
	changed      wait.Broadcast // It wakes waits whenever a field below changes.
	batches      map[uint64]*tensor.MiniBatch
	held         map[uint64]int64 // bytes of the fragments that wait for their partners, by the mini-batch's number
	arrived      []uint64         // in free order: the numbers in the order of arrival
	due          uint64           // in plan order: the number that get waits for
	bytes        int64            // bytes counts the mini-batches, and the fragments that wait.
	awaitedBytes int64            // reserved for fragments that are on their way
	reserved     map[uint64]int64 // those bytes, by the fragment's number
	roomWaiters  int              // callers of Put, Hold and Reserve that wait for room
	closed       bool             // Put and reserve fail from now on
	drained      bool             // Statistics do not change any more
	closeError   error
	stats        Statistics
	depthChanged time.Time // when stats last accounted the depth
}

// Statistics are a queue's statistics.
type Statistics struct {
	Depth      int           // mini-batches in the queue now
	Bytes      int64         // Bytes counts the mini-batches in the queue now, and the fragments that wait.
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
		batches: map[uint64]*tensor.MiniBatch{}, held: map[uint64]int64{}, reserved: map[uint64]int64{},
	}
	q.depthChanged = q.now()
	return q
}

// Put waits for room and adds a mini-batch of one fragment. A mini-batch whose room is reserved does not wait. If Put
// returns an error the mini-batch stays the caller's.
func (q *Queue) Put(ctx context.Context, fragment dataset.Fragment, mb *tensor.MiniBatch) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.awaitRoomFor(ctx, fragment, mb.Bytes()); err != nil {
		return err
	}
	q.add(mb)
	return nil
}

// Hold waits for room for a fragment that waits for its partners, and counts its bytes until PutJoined. A fragment
// whose room is reserved does not wait.
func (q *Queue) Hold(ctx context.Context, fragment dataset.Fragment, size int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.awaitRoomFor(ctx, fragment, size); err != nil {
		return err
	}
	q.held[fragment.MiniBatch] += size
	q.addBytes(size)
	q.wakeWaiters()
	return nil
}

// PutJoined adds the mini-batch of which all fragments are held, in their place. It does not wait.
func (q *Queue) PutJoined(mb *tensor.MiniBatch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	number := mb.Name.Number
	q.bytes -= q.held[number]
	delete(q.held, number)
	q.add(mb)
}

// add adds a mini-batch. q.mu is held.
func (q *Queue) add(mb *tensor.MiniBatch) {
	q.accountDepth()
	number := mb.Name.Number
	q.batches[number] = mb
	if !q.ordered {
		q.arrived = append(q.arrived, number)
	}
	q.addBytes(mb.Bytes())
	q.wakeWaiters()
}

// addBytes counts bytes that the queue has from now on. q.mu is held.
func (q *Queue) addBytes(size int64) {
	q.bytes += size
	q.stats.MaxBytes = max(q.stats.MaxBytes, q.bytes)
}

// Reserve waits until a fragment that is still to be fetched fits beside what the queue holds and what is on its way,
// and keeps room for it until release. As in Put, a fragment passes alone, and so does every fragment of the mini-batch
// that is due. A fragment before the due mini-batch passes too: another caller has put it meanwhile, and this caller
// must learn that before it asks for the mini-batch that is due.
func (q *Queue) Reserve(ctx context.Context, fragment dataset.Fragment, size int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.awaitRoom(ctx, func() bool { return q.admits(fragment.MiniBatch, size, q.awaitedBytes) })
	if err != nil {
		return err
	}
	q.awaitedBytes += size
	q.reserved[fragment.Number] = size
	return nil
}

// Release gives up reserved room: the fragment has come, or will not come.
func (q *Queue) Release(fragment dataset.Fragment, size int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.awaitedBytes -= size
	delete(q.reserved, fragment.Number)
	q.wakeWaiters()
}

// admits reports whether size bytes of a mini-batch may come now. awaited are the bytes that come before them. q.mu is
// held.
func (q *Queue) admits(number uint64, size, awaited int64) bool {
	_, begun := q.held[number]
	switch {
	case begun, q.bytes+awaited+size <= q.limitBytes, q.ordered && number <= q.due:
		return true
	case len(q.batches) > 0:
		return false
	case len(q.held) > 0:
		return !q.ordered
	}
	return awaited == 0
}

// awaitRoomFor waits until a fragment that has come may enter the queue. q.mu is held.
func (q *Queue) awaitRoomFor(ctx context.Context, fragment dataset.Fragment, size int64) error {
	return q.awaitRoom(ctx, func() bool {
		return q.reserved[fragment.Number] >= size || q.admits(fragment.MiniBatch, size, 0)
	})
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

// Drain releases every mini-batch in the queue, and counts no fragment as held any more.
func (q *Queue) Drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.accountDepth()
	for number, mb := range q.batches {
		mb.Release()
		delete(q.batches, number)
	}
	clear(q.held)
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
