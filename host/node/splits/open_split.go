package splits

import (
	"context"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// maxSkip bounds the mini-batches that a split makes without a request in order to reach a requested mini-batch. Beyond
// maxSkip the split opens its stream again, at the requested mini-batch.
const maxSkip = 8

// reorderWait is the time for which a stream is not opened past mini-batches of the split that no client has taken. A
// client that asks for several mini-batches at once does so on several connections, and the first request to arrive
// is seldom that of the first mini-batch. A stream opened too far ahead would be opened a second time for the
// mini-batches before it, and would make the same mini-batches twice.
const reorderWait = 2 * time.Millisecond

// Key names a split of a job's epoch on a drive.
type Key struct {
	Job   dataset.Digest
	Epoch uint64
	Drive string
	Place int // Place is that of the split in the epoch's plan.
}

// openSplit is a split that requests were made for: its producer, a goroutine that makes mini-batches with a stream,
// and the mini-batches that were made and not taken. Its numbers are those of fragments: a mini-batch here is the part
// of a mini-batch that the split has. Table.mu guards its fields, except those whose comments say otherwise.
type openSplit struct {
	key   Key           // constant
	split dataset.Split // constant
	table *Table        // constant
	owner string        // in whose account the split counts; "": in none; constant

	next  uint64                       // number of the fragment that the stream makes next
	limit uint64                       // mini-batches are made ahead up to here, exclusive
	ready map[uint64]*tensor.MiniBatch // made and not taken
	// written to a client: such a mini-batch is not made ahead again, and not kept when it is made on the way to another
	taken         map[uint64]bool
	waiting       map[uint64][]*waiter // requests, by number
	lent          int                  // mini-batches that were taken and not given back
	peers         map[*Peer]int        // open connections that asked, and how often
	lastRequest   time.Time
	failed        error // The last attempt failed with this error; the next request makes another attempt.
	streaming     bool  // the stream is open
	streamed      bool  // the stream was open before: it would go on at next
	waitedInVain  bool  // the last step was stepDefer, and no request came
	ended         bool  // takes no more requests
	producerEnded bool

	wakeup chan struct{}   // something changed; capacity 1
	ctx    context.Context // ctx is that of the stream; it is constant.
	stop   context.CancelFunc
}

// waiter is a request that waits for its mini-batch.
type waiter struct {
	answer chan answer // capacity 1
}

// answer is the result that a waiting request gets.
type answer struct {
	mb  *tensor.MiniBatch
	err error
}

// newOpenSplit makes a split of which nothing was made yet. taken are the mini-batches that were taken when it was open
// before; nil for none.
func newOpenSplit(t *Table, q *Request, taken map[uint64]bool) *openSplit {
	s := &openSplit{
		key: q.Key, split: q.Split, table: t, owner: q.Owner, next: q.Number, taken: taken,
		ready: map[uint64]*tensor.MiniBatch{}, waiting: map[uint64][]*waiter{}, peers: map[*Peer]int{},
		wakeup: make(chan struct{}, 1),
	}
	if s.taken == nil {
		s.taken = map[uint64]bool{}
	}
	ctx, stop := context.WithCancelCause(context.Background())
	s.ctx, s.stop = ctx, func() { stop(ErrStopped) }
	return s
}

// end returns the number behind the split's last fragment.
func (s *openSplit) end() uint64 { return s.split.End() }

// numberOf returns the number of a fragment that the split's stream made: mb's name has the number of its mini-batch.
func (s *openSplit) numberOf(mb *tensor.MiniBatch) uint64 {
	return mb.Name.Number - s.split.FirstBatch + s.split.FirstFragment
}

// wake makes the producer decide again.
func (s *openSplit) wake() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// step is a producer's next step.
type step int

const (
	stepWait  step = iota // until something changes
	stepDefer             // for reorderWait, or until something changes
	stepOpen              // opens the stream at next
	stepMake              // makes a mini-batch
	stepClose             // closes the stream: there is nothing to make with it
	stepEnd
)

func (s step) String() string { return [...]string{"wait", "defer", "open", "make", "close", "end"}[s] }

// nextStep alone decides what the producer does next. Table.mu is held.
func (s *openSplit) nextStep() step {
	wanted, waiting := s.firstWaiting()
	switch {
	case s.ended:
		return stepEnd
	case waiting && !s.streaming && !s.waitedInVain && s.lacksBefore(wanted):
		return stepDefer
	case waiting && (!s.streaming || wanted < s.next || wanted-s.next > maxSkip):
		s.next, s.failed = wanted, nil
		return stepOpen
	case waiting:
		return stepMake
	case s.streaming && !s.lacksUpTo(s.end()):
		return stepClose
	case s.streaming && !s.lacksUpTo(s.limit):
		if s.table.promiseStream(s.key.streamPool()) {
			return stepClose
		}
		return stepWait // the stream can go on when the limit grows
	case s.failed == nil && s.lacksUpTo(s.limit) && !s.table.accounts.full(s.key.Job, s.owner):
		if s.streaming {
			return stepMake
		}
		return stepOpen
	}
	return stepWait
}

// lacks reports whether a mini-batch was neither made nor taken. Table.mu is held.
func (s *openSplit) lacks(number uint64) bool { return !s.taken[number] && s.ready[number] == nil }

// lacksUpTo reports whether a mini-batch from next up to limit, exclusive, is lacking. Table.mu is held.
func (s *openSplit) lacksUpTo(limit uint64) bool {
	if len(s.taken) == s.split.Fragments {
		return false
	}
	for n := s.next; n < limit; n++ {
		if s.lacks(n) {
			return true
		}
	}
	return false
}

// lacksBefore reports whether a mini-batch is lacking before number, from where the stream would go on. Table.mu is
// held.
func (s *openSplit) lacksBefore(number uint64) bool {
	from := s.split.FirstFragment
	if s.streamed {
		from = s.next
	}
	for n := from; n < number; n++ {
		if s.lacks(n) {
			return true
		}
	}
	return false
}

// firstWaiting returns the smallest number that requests wait for. Table.mu is held.
func (s *openSplit) firstWaiting() (first uint64, ok bool) {
	for number := range s.waiting {
		if !ok || number < first {
			first, ok = number, true
		}
	}
	return first, ok
}

// refuseWaiting ends every waiting request with an error. Table.mu is held.
func (s *openSplit) refuseWaiting(err error) {
	for _, list := range s.waiting {
		for _, w := range list {
			w.answer <- answer{err: err}
		}
	}
	clear(s.waiting)
}

// offer gives a mini-batch to the requests that wait for it, or keeps it. It reports whether the mini-batch was wanted
// or kept. Table.mu is held.
func (s *openSplit) offer(number uint64, mb *tensor.MiniBatch) bool {
	if list := s.waiting[number]; len(list) > 0 {
		delete(s.waiting, number)
		for i, w := range list {
			if i > 0 {
				mb.Retain()
				s.table.accounts.add(s.key.Job, s.owner, 1, mb.Bytes())
			}
			s.lent++
			w.answer <- answer{mb: mb}
		}
		return true
	}
	if s.ended || !s.lacks(number) {
		return false
	}
	s.ready[number] = mb
	return true
}
