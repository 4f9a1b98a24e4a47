package trainmgr

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/millrace/millrace/sdk/tensor"
)

// queue is the input queue: mini-batches between the workers that make them and the trainer that takes them, bounded
// in bytes.
//
// A mini-batch is admitted while the bytes waiting, its own included, stay within the limit, and always when nothing waits: so one that is larger
// than the whole queue still passes, alone. In plan order the mini-batch that is due next is admitted always, since
// those behind it cannot leave before it; the queue then exceeds its limit by that one at most.
type queue struct {
	limit   int64
	ordered bool
	after   func(n uint64) uint64 // plan order: the number that is due after n

	mu      sync.Mutex
	changed chan struct{} // closed and renewed whenever something below changes
	items   map[uint64]*tensor.MiniBatch
	fifo    []uint64 // free order: arrival; plan order: unused
	due     uint64   // plan order: the number that get waits for
	bytes   int64
	awaited int64 // bytes of mini-batches on their way that room is kept for
	waiters int   // who waits for room
	closed  bool  // nothing more is put
	ended   bool  // nothing more is taken: statistics stand still
	err     error
	stats   queueStats
	last    time.Time // when depth last changed
	now     func() time.Time
}

// queueStats are what a queue saw.
type queueStats struct {
	Depth      int           // now
	Bytes      int64         // now
	Waiters    int           // who waits for room now
	MaxBytes   int64         // most at once
	Stall      time.Duration // the trainer waited, after its first mini-batch
	FirstWait  time.Duration // the trainer waited for its first mini-batch
	Stalls     int           // times that it waited after the first
	Blocked    time.Duration // workers waited for room, added up
	DepthTime  time.Duration // integral of depth over time, in mini-batches
	Elapsed    time.Duration // time that DepthTime spans
	taken      int64
	firstTaken bool
}

// depthMean is the mean number of waiting mini-batches over time.
func (s *queueStats) depthMean() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.DepthTime) / float64(s.Elapsed)
}

// newQueue makes a queue in free order, or, with after, in plan order from due on.
func newQueue(limit int64, due uint64, after func(uint64) uint64) *queue {
	q := &queue{limit: limit, ordered: after != nil, after: after, due: due, items: map[uint64]*tensor.MiniBatch{}, changed: make(chan struct{}), now: time.Now}
	q.last = q.now()
	return q
}

// put adds a mini-batch, waiting for room. On error the mini-batch stays the caller's.
func (q *queue) put(ctx context.Context, mb *tensor.MiniBatch) error {
	size := mb.Bytes()
	var begin time.Time
	for {
		q.mu.Lock()
		if q.closed {
			err := q.err
			q.mu.Unlock()
			if err == nil {
				err = io.ErrClosedPipe
			}
			return err
		}
		n := mb.Name.Number
		if len(q.items) == 0 || q.bytes+size <= q.limit || (q.ordered && n == q.due) {
			if !begin.IsZero() {
				q.stats.Blocked += q.now().Sub(begin)
			}
			q.tick()
			q.items[n] = mb
			if !q.ordered {
				q.fifo = append(q.fifo, n)
			}
			q.bytes += size
			q.stats.MaxBytes = max(q.stats.MaxBytes, q.bytes)
			q.wake()
			q.mu.Unlock()
			return nil
		}
		wait := q.changed
		q.waiters++
		q.mu.Unlock()
		if begin.IsZero() {
			begin = q.now()
		}
		select {
		case <-wait:
		case <-ctx.Done():
		}
		q.mu.Lock()
		q.waiters--
		q.mu.Unlock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// reserve waits until a mini-batch that is still to be fetched fits beside what waits and what is on its way, and keeps
// room for it until release: so that what is under way counts too. As in put, one alone always passes, and so does the one that is due;
// and one before that, which has come by another way meanwhile, or who waits for it would never ask for the one that is due.
func (q *queue) reserve(ctx context.Context, number uint64, size int64) error {
	var begin time.Time
	for {
		q.mu.Lock()
		if q.closed {
			err := q.err
			q.mu.Unlock()
			if err == nil {
				err = io.ErrClosedPipe
			}
			return err
		}
		if (len(q.items) == 0 && q.awaited == 0) || q.bytes+q.awaited+size <= q.limit || (q.ordered && number <= q.due) {
			if !begin.IsZero() {
				q.stats.Blocked += q.now().Sub(begin)
			}
			q.awaited += size
			q.mu.Unlock()
			return nil
		}
		wait := q.changed
		q.waiters++
		q.mu.Unlock()
		if begin.IsZero() {
			begin = q.now()
		}
		select {
		case <-wait:
		case <-ctx.Done():
		}
		q.mu.Lock()
		q.waiters--
		q.mu.Unlock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// release gives up room that was reserved: the mini-batch is in the queue, or will not come.
func (q *queue) release(size int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.awaited -= size
	q.wake()
}

// get takes the next mini-batch, waiting for it. After close it returns what is left, then the close's error or io.EOF.
func (q *queue) get(ctx context.Context) (*tensor.MiniBatch, error) {
	var begin time.Time
	for {
		q.mu.Lock()
		if mb := q.take(); mb != nil {
			if !begin.IsZero() {
				waited := q.now().Sub(begin)
				if q.stats.firstTaken {
					q.stats.Stall += waited
					q.stats.Stalls++
				} else {
					q.stats.FirstWait = waited
				}
			}
			q.stats.firstTaken = true
			q.stats.taken++
			q.wake()
			q.mu.Unlock()
			return mb, nil
		}
		if q.closed {
			err := q.err
			q.mu.Unlock()
			if err == nil {
				err = io.EOF
			}
			return nil, err
		}
		wait := q.changed
		q.mu.Unlock()
		if begin.IsZero() {
			begin = q.now()
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take removes the mini-batch that is next, or returns nil. q.mu is held.
func (q *queue) take() *tensor.MiniBatch {
	n := q.due
	if !q.ordered {
		if len(q.fifo) == 0 {
			return nil
		}
		n = q.fifo[0]
	}
	mb, ok := q.items[n]
	if !ok {
		return nil
	}
	q.tick()
	delete(q.items, n)
	if q.ordered {
		q.due = q.after(n)
	} else {
		q.fifo = q.fifo[1:]
	}
	q.bytes -= mb.Bytes()
	return mb
}

// close ends the queue: with nil once all has been put, with an error when the job failed. Only the first close counts.
func (q *queue) close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed, q.err = true, err
	q.wake()
}

// drain releases everything that waits.
func (q *queue) drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tick()
	for n, mb := range q.items {
		mb.Release()
		delete(q.items, n)
	}
	q.fifo, q.bytes, q.ended = nil, 0, true
	q.wake()
}

// statistics returns what the queue saw until now.
func (q *queue) statistics() queueStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tick()
	s := q.stats
	s.Depth, s.Bytes, s.Waiters = len(q.items), q.bytes, q.waiters
	return s
}

// tick accounts the depth up to now. q.mu is held; nothing is counted once the queue has ended.
func (q *queue) tick() {
	if q.ended {
		return
	}
	now := q.now()
	d := now.Sub(q.last)
	q.stats.DepthTime += time.Duration(len(q.items)) * d
	q.stats.Elapsed += d
	q.last = now
}

// wake tells every waiter to look again. q.mu is held.
func (q *queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}
