package splits

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// Opener opens a stream of a split on its drive.
type Opener func(ctx context.Context, r api.SplitRequest) (api.Stream, error)

var (
	// ErrStopped is why requests fail when their split is closed under them.
	ErrStopped = errors.New("the split was closed on the node: ask again")
	// ErrOwner refuses new splits to an owner that has as many open as it may.
	ErrOwner = errors.New("the owner has as many splits open as it may")
	// ErrDraining refuses new splits.
	ErrDraining = errors.New("draining: no new splits are taken")
)

// Options are what a Table needs of its node. All but OwnerBytes and OwnerSplits are required; the times and bounds are
// the node's configuration.
type Options struct {
	Open   Opener
	Failed func(drive string, err error) // a split failed; must not block
	Log    *slog.Logger
	Fence  func() uint64 // Fence returns that of the latest leader, for the log.

	NodeBytes   int64 // buffered bytes past which nothing is made ahead
	JobBytes    int64 // the same for one job
	OwnerBytes  int64 // the same for all jobs of one owner; 0: no bound
	OwnerSplits int   // splits of one owner that may be open; 0: any number

	Idle      time.Duration // a split that no client requests for this time is closed
	Abandoned time.Duration // the same if every connection that requested the split is closed
	BusyWait  time.Duration // how long a split waits for a stream of its drive
}

// Table is the open splits of a node, and the accounts of their mini-batches.
type Table struct {
	o Options

	mu            sync.Mutex
	open          map[Key]*openSplit
	unfinished    map[*openSplit]struct{} // whose goroutine runs or whose mini-batches are lent, even if ended
	accounts      accounts
	responses     map[*Response]struct{}      // being written
	refusedJobs   map[dataset.Digest]struct{} // being finished
	refusedDrives map[string]error            // drives that take no splits, and why
	draining      bool
	history       map[Key]history // history has splits that ended before all of them was taken.
	demand        map[streamPool]*streamDemand
	streamClosed  wait.Broadcast // It tells that a stream was closed.
	changed       *sync.Cond     // changed uses mu: a split or a response ended.
	closing       bool
}

// history has the mini-batches that were taken of a split, and the time when the split ended.
type history struct {
	taken map[uint64]bool
	ended time.Time
}

// New makes a Table with nothing open.
func New(o Options) *Table {
	t := &Table{
		o: o, open: map[Key]*openSplit{}, unfinished: map[*openSplit]struct{}{}, accounts: newAccounts(&o),
		responses: map[*Response]struct{}{}, refusedJobs: map[dataset.Digest]struct{}{},
		refusedDrives: map[string]error{},
		history:       map[Key]history{}, demand: map[streamPool]*streamDemand{},
	}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// Request asks for a fragment of a split.
type Request struct {
	Key
	Split  dataset.Split
	Number uint64 // The fragment has this number.
	Until  uint64 // fragments are made ahead up to here, exclusive; above Number
	Peer   *Peer  // the connection; nil if unknown
	Owner  string // in whose account the split counts if this request opens it; "": in none
}

// Response is a mini-batch on its way to a client. Table.Done ends it.
type Response struct {
	split *openSplit
	mb    *tensor.MiniBatch
	abort func() // cuts the writing off
}

// MiniBatch returns the mini-batch to write. It is valid until Table.Done.
func (r *Response) MiniBatch() *tensor.MiniBatch { return r.mb }

// Get returns a mini-batch: made before, or made now. The Table calls abort, in another goroutine, when the response
// has to end. The caller calls Done.
func (t *Table) Get(ctx context.Context, q Request, abort func()) (*Response, error) {
	s, w, mb, err := t.takeOrWait(&q)
	if err != nil {
		return nil, err
	}
	if mb == nil {
		select {
		case a := <-w.answer:
			if a.err != nil {
				return nil, a.err
			}
			mb = a.mb
		case <-ctx.Done():
			t.withdraw(s, q.Number, w)
			return nil, context.Cause(ctx)
		}
	}
	r := &Response{split: s, mb: mb, abort: abort}
	t.mu.Lock()
	t.responses[r] = struct{}{}
	t.mu.Unlock()
	if t.Stopped(r) { // before the response was registered above: nothing would cut the response off
		t.Done(r, false)
		return nil, ErrStopped
	}
	return r, nil
}

// takeOrWait finds or opens the split. It returns the mini-batch if it was made, and a waiter for it otherwise.
func (t *Table) takeOrWait(q *Request) (*openSplit, *waiter, *tensor.MiniBatch, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, err := t.findOrOpen(q)
	if err != nil {
		return nil, nil, nil, err
	}
	s.lastRequest = time.Now()
	s.limit = min(max(q.Until, q.Number+1), s.end())
	q.Peer.ask(s)
	if mb := s.ready[q.Number]; mb != nil {
		delete(s.ready, q.Number)
		s.lent++
		s.wake()
		return s, nil, mb, nil
	}
	w := &waiter{answer: make(chan answer, 1)}
	s.waiting[q.Number] = append(s.waiting[q.Number], w)
	s.wake()
	return s, w, nil, nil
}

// findOrOpen returns the split of a request, and opens it if it is not open. mu is held.
func (t *Table) findOrOpen(q *Request) (*openSplit, error) {
	s := t.open[q.Key]
	if err := t.refusedDrives[q.Drive]; err != nil && (s == nil || !errors.Is(err, ErrDraining)) {
		return nil, err
	}
	if _, ok := t.refusedJobs[q.Job]; ok || t.closing {
		return nil, fmt.Errorf("job %s: %w", q.Job, api.ErrUnknownJob)
	}
	if s != nil {
		return s, nil
	}
	if t.draining {
		return nil, ErrDraining
	}
	if err := t.accounts.openSplit(q.Owner); err != nil {
		return nil, err
	}
	s = newOpenSplit(t, q, t.history[q.Key].taken)
	delete(t.history, q.Key)
	t.open[q.Key], t.unfinished[s] = s, struct{}{}
	go func() {
		defer t.producerEnded(s)
		(&producer{split: s}).run()
	}()
	return s, nil
}

// withdraw takes back a request whose client is gone. A mini-batch that the request was given meanwhile is put back.
func (t *Table) withdraw(s *openSplit, number uint64, w *waiter) {
	t.mu.Lock()
	list := s.waiting[number]
	if i := slices.Index(list, w); i >= 0 {
		if list = slices.Delete(list, i, i+1); len(list) == 0 {
			delete(s.waiting, number)
		} else {
			s.waiting[number] = list
		}
	}
	t.mu.Unlock()
	select {
	case a := <-w.answer:
		if a.mb != nil {
			t.giveBack(s, a.mb, false)
		}
	default:
	}
}

// Done ends a response. written reports whether it was fully written. An unwritten mini-batch stays buffered for the
// next request.
func (t *Table) Done(r *Response, written bool) {
	t.mu.Lock()
	delete(t.responses, r)
	t.changed.Broadcast()
	t.mu.Unlock()
	t.giveBack(r.split, r.mb, written)
}

// Stopped reports whether a response should end because its split has ended.
func (t *Table) Stopped(r *Response) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return r.split.ended
}

// giveBack ends the loan of a mini-batch.
func (t *Table) giveBack(s *openSplit, mb *tensor.MiniBatch, written bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.lent--
	s.lastRequest = time.Now()
	number := s.numberOf(mb)
	if written {
		s.taken[number] = true
		if twin := s.ready[number]; twin != nil { // it was made again meanwhile
			delete(s.ready, number)
			t.release(s, twin)
		}
	}
	if written || s.ended || !s.offer(number, mb) {
		t.release(s, mb)
	}
	t.endIfDone(s)
	t.dropIfFinished(s)
}

// producerEnded records that the goroutine of a split has ended.
func (t *Table) producerEnded(s *openSplit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.producerEnded = true
	t.dropIfFinished(s)
}

// dropIfFinished forgets a split whose work and mini-batches are done, and wakes the calls that wait for it. mu is
// held.
func (t *Table) dropIfFinished(s *openSplit) {
	if s.producerEnded && s.lent == 0 {
		delete(t.unfinished, s)
	}
	t.changed.Broadcast()
}

// add takes a mini-batch that a split made.
func (t *Table) add(s *openSplit, mb *tensor.MiniBatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.accounts.add(s.key.Job, s.owner, 1, mb.Bytes())
	s.next++
	if s.ended || !s.offer(s.numberOf(mb), mb) {
		t.release(s, mb)
	}
}

// release releases a mini-batch, and wakes the splits that waited for room. mu is held.
func (t *Table) release(s *openSplit, mb *tensor.MiniBatch) {
	wasFull := t.accounts.full(s.key.Job, s.owner)
	t.accounts.add(s.key.Job, s.owner, -1, mb.Bytes())
	mb.Release()
	if !wasFull {
		return
	}
	for _, other := range t.open {
		other.wake()
	}
}

// endIfDone ends a split that has nothing left to make and nothing to give. If not all of it was taken, the numbers
// of the taken mini-batches are remembered for a while: requests that overtook each other may ask for the rest. mu is
// held.
func (t *Table) endIfDone(s *openSplit) {
	busy := s.streaming || len(s.ready) > 0 || len(s.waiting) > 0 || s.lent > 0
	if s.ended || busy || s.failed != nil || s.lacksUpTo(s.end()) {
		return
	}
	if len(s.taken) < s.split.Fragments {
		t.history[s.key] = history{s.taken, time.Now()}
	}
	t.end(s, ErrStopped)
}

// end ends a split: it releases the mini-batches that were made, and answers waiting requests with err. mu is held.
func (t *Table) end(s *openSplit, err error) {
	if s.ended {
		return
	}
	s.ended = true
	delete(t.open, s.key)
	for number, mb := range s.ready {
		delete(s.ready, number)
		t.release(s, mb)
	}
	t.accounts.closeSplit(s.owner)
	s.refuseWaiting(err)
	for p := range s.peers {
		delete(p.splits, s)
	}
	clear(s.peers)
	s.stop()
	s.wake()
}

// recordOpened records that a split has its stream.
func (t *Table) recordOpened(s *openSplit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.streaming = true
	t.o.Log.Debug("split opened", "digest", host.ShortDigest(s.key.Job), "split", s.key.Place, "epoch", s.key.Epoch,
		"drive", s.key.Drive, "number", s.next, "fence", t.o.Fence())
}

// recordClosed records that a split's stream is closed.
func (t *Table) recordClosed(s *openSplit, err error) {
	if err != nil && s.ctx.Err() == nil {
		t.o.Log.Warn("split did not close well", "digest", host.ShortDigest(s.key.Job), "split", s.key.Place,
			"drive", s.key.Drive, "error", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.streaming = false
	if d := t.demand[s.key.streamPool()]; d != nil && d.promised > 0 {
		d.promised--
	}
	t.streamClosed.Broadcast()
	t.endIfDone(s)
	t.changed.Broadcast()
}

// recordFailure logs that a split failed, and tells Options.Failed. A busy drive is not a failure.
func (t *Table) recordFailure(s *openSplit, err error) {
	if s.ctx.Err() != nil || errors.Is(err, api.ErrBusy) {
		return
	}
	t.o.Log.Warn("split failed", "digest", host.ShortDigest(s.key.Job), "split", s.key.Place, "epoch", s.key.Epoch,
		"drive", s.key.Drive, "fence", t.o.Fence(), "error", err)
	if p := (*processor.PanicError)(nil); errors.As(err, &p) {
		t.o.Log.Error("the worker panicked", "drive", s.key.Drive, "panic", p.Value, "stack", string(p.Stack))
	}
	t.o.Failed(s.key.Drive, err)
}
