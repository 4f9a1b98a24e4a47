package splits

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// Opener opens a split on its drive.
type Opener func(ctx context.Context, order api.SplitRequest) (api.Stream, error)

// ErrStopped is why a run's requests fail when the run is closed under them.
var ErrStopped = errors.New("the split was closed on the node: ask again")

// ErrOwner refuses new splits to an owner that has as many open as it may.
var ErrOwner = errors.New("the owner has as many splits open as it may")

// ErrDraining refuses new splits.
var ErrDraining = errors.New("draining: no new splits are taken")

// Options are what a Table needs of its node. All are required; the times and bounds are the node's configuration.
type Options struct {
	Open      Opener
	Failed    func(drive string, err error) // a stream failed; must not wait
	Log       *slog.Logger
	Fence     func() uint64 // of the latest leader, for the log
	NodeBytes int64         // past which nothing more is made ahead
	JobBytes  int64         // the same for one job
	// OwnerBytes is the same for all jobs of one owner; 0: no bound.
	OwnerBytes int64
	// OwnerSplits is how many splits of one owner may be open; 0: any number.
	OwnerSplits int
	Idle        time.Duration // after which a split is closed that nobody asks of
	Abandoned   time.Duration // the same when no connection is left that asked
	BusyWait    time.Duration // for a place on a drive
}

// Held is what mini-batches take that are made and not given back: their number and bytes.
type Held struct{ Batches, Bytes int64 }

// Table is the open splits of a node, and the account of what they hold.
type Table struct {
	o Options

	mu       sync.Mutex
	open     map[Key]*run
	live     map[*run]struct{} // whose goroutine runs, or of which a mini-batch is out: those that ended too
	jobs     map[dataset.Digest]*Held
	owners   map[string]*share // those of whom something is open or held
	total    Held
	out      map[*Response]struct{}      // responses that are being written
	refused  map[dataset.Digest]struct{} // jobs that are being finished
	away     map[string]error            // drives that take no splits, and why
	draining bool
	past     map[Key]past
	demand   map[seat]*demand
	freed    chan struct{} // closed, and replaced, when a place on a drive may be free
	changed  *sync.Cond    // of mu: a run or a response ended
	closing  bool
}

// New makes a Table with nothing open.
func New(o Options) *Table {
	s := &Table{
		owners: map[string]*share{},
		o:      o, open: map[Key]*run{}, live: map[*run]struct{}{}, jobs: map[dataset.Digest]*Held{}, out: map[*Response]struct{}{}, refused: map[dataset.Digest]struct{}{},
		away: map[string]error{}, past: map[Key]past{}, demand: map[seat]*demand{}, freed: make(chan struct{}),
	}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// Request asks for a mini-batch of a split.
type Request struct {
	Key
	Split  dataset.Split
	Number uint64
	Until  uint64 // make ahead up to here; above number
	Peer   *Peer  // the connection, nil if unknown
	Owner  string // for whom the split counts that the request opens; empty: for nobody
}

// share is what an owner has of a node.
type share struct {
	Held
	splits int // open
}

// Response is a mini-batch on its way to a client. Call Table.Done once it was written, or was not.
type Response struct {
	run   *run
	mb    *tensor.MiniBatch
	abort func() // cuts the writing off
}

// MiniBatch is what to write. It is valid until Table.Done.
func (p *Response) MiniBatch() *tensor.MiniBatch { return p.mb }

// Get returns a mini-batch: made before, or made now. abort is called, by another goroutine, when the response has to end.
func (s *Table) Get(ctx context.Context, q Request, abort func()) (*Response, error) {
	r, w, mb, err := s.ask(q)
	if err != nil {
		return nil, err
	}
	if mb == nil {
		select {
		case m := <-w.got:
			if m.err != nil {
				return nil, m.err
			}
			mb = m.mb
		case <-ctx.Done():
			r.forget(q.Number, w)
			return nil, context.Cause(ctx)
		}
	}
	p := &Response{run: r, mb: mb, abort: abort}
	s.mu.Lock()
	s.out[p] = struct{}{}
	s.mu.Unlock()
	if s.Stopped(p) { // before it was entered above: nobody would cut it off
		s.Done(p, false)
		return nil, ErrStopped
	}
	return p, nil
}

// ask finds or begins the run, and takes the mini-batch or waits for it.
func (s *Table) ask(q Request) (*run, *waiter, *tensor.MiniBatch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.away[q.Drive]; err != nil {
		if _, running := s.open[q.Key]; !running || !errors.Is(err, ErrDraining) {
			return nil, nil, nil, err
		}
	}
	if _, ok := s.refused[q.Job]; ok || s.closing {
		return nil, nil, nil, fmt.Errorf("job %s: %w", q.Job, api.ErrUnknownJob)
	}
	r := s.open[q.Key]
	if r == nil {
		if s.draining {
			return nil, nil, nil, ErrDraining
		}
		if err := s.admit(q.Owner); err != nil {
			return nil, nil, nil, err
		}
		r = &run{
			owner: q.Owner, key: q.Key, split: q.Split, all: s, next: q.Number, ready: map[uint64]*tensor.MiniBatch{}, waiting: map[uint64][]*waiter{}, taken: map[uint64]bool{},
			conns: map[*Peer]int{}, kick: make(chan struct{}, 1),
		}
		ctx, stop := context.WithCancelCause(context.Background())
		r.ctx, r.stop = ctx, func() { stop(ErrStopped) }
		if p, ok := s.past[q.Key]; ok {
			r.taken = p.taken
			delete(s.past, q.Key)
		}
		s.open[q.Key], s.live[r] = r, struct{}{}
		go func() {
			defer s.produced(r)
			r.produce()
		}()
	}
	r.asked = time.Now()
	r.limit = min(max(q.Until, q.Number+1), r.end())
	if q.Peer != nil && !q.Peer.gone {
		if r.conns[q.Peer] == 0 {
			if q.Peer.runs == nil {
				q.Peer.runs = map[*run]struct{}{}
			}
			q.Peer.runs[r] = struct{}{}
		}
		r.conns[q.Peer]++
	}
	if mb := r.ready[q.Number]; mb != nil {
		delete(r.ready, q.Number)
		r.out++
		r.wake()
		return r, nil, mb, nil
	}
	w := &waiter{got: make(chan made, 1)}
	r.waiting[q.Number] = append(r.waiting[q.Number], w)
	r.wake()
	return r, w, nil, nil
}

// Done ends a response. What was not written is put back, for the client to ask again.
func (s *Table) Done(p *Response, written bool) {
	s.mu.Lock()
	delete(s.out, p)
	s.changed.Broadcast()
	s.mu.Unlock()
	s.giveBack(p.run, p.mb, written)
}

// Stopped tells whether a response should end because its run did.
func (s *Table) Stopped(p *Response) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.run.ended
}

// giveBack ends a run's hold on a mini-batch that was taken.
func (s *Table) giveBack(r *run, mb *tensor.MiniBatch, written bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.out--
	r.asked = time.Now()
	if number := mb.Name.Number; written {
		r.taken[number] = true
		if twin := r.ready[number]; twin != nil { // made again meanwhile
			delete(r.ready, number)
			s.release(r, twin)
		}
	}
	if written || r.ended || !r.offer(mb.Name.Number, mb) {
		s.release(r, mb)
	}
	s.endIfDone(r)
	s.forgetIfOver(r)
}

// produced says that a run's goroutine has ended.
func (s *Table) produced(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.over = true
	s.forgetIfOver(r)
}

// forgetIfOver tells those who wait for a run, and no longer knows it when nothing of it is left. mu is held.
func (s *Table) forgetIfOver(r *run) {
	if r.over && r.out == 0 {
		delete(s.live, r)
	}
	s.changed.Broadcast()
}

// add takes a mini-batch that a run made.
func (s *Table) add(r *run, mb *tensor.MiniBatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.account(r, mb, 1)
	r.next++
	if r.ended || !r.offer(mb.Name.Number, mb) {
		s.release(r, mb)
	}
}

// admit opens one split more for an owner. mu is held.
func (s *Table) admit(owner string) error {
	if owner == "" {
		return nil
	}
	o := s.owners[owner]
	if o == nil {
		o = &share{}
		s.owners[owner] = o
	}
	if s.o.OwnerSplits > 0 && o.splits >= s.o.OwnerSplits {
		return fmt.Errorf("%w: %s has %d (limits.owner_splits)", ErrOwner, owner, o.splits)
	}
	o.splits++
	return nil
}

// closes says that a split of an owner is not open any more. mu is held.
func (s *Table) closes(owner string) {
	if o := s.owners[owner]; o != nil {
		o.splits--
		s.leaveIfEmpty(owner, o)
	}
}

// leaveIfEmpty forgets an owner who has nothing. mu is held.
func (s *Table) leaveIfEmpty(owner string, o *share) {
	if o.splits == 0 && o.Batches == 0 {
		delete(s.owners, owner)
	}
}

// account adds a mini-batch of a run to what is held, or takes it away. mu is held.
func (s *Table) account(r *run, mb *tensor.MiniBatch, sign int64) {
	job := r.key.Job
	h := s.jobs[job]
	if h == nil {
		h = &Held{}
		s.jobs[job] = h
	}
	n := mb.Bytes()
	h.Batches += sign
	h.Bytes += sign * n
	s.total.Batches += sign
	s.total.Bytes += sign * n
	if h.Batches == 0 {
		delete(s.jobs, job)
	}
	if r.owner == "" {
		return
	}
	o := s.owners[r.owner]
	if o == nil { // its splits are closed, and it is given something back
		o = &share{}
		s.owners[r.owner] = o
	}
	o.Batches += sign
	o.Bytes += sign * n
	s.leaveIfEmpty(r.owner, o)
}

// release lets a mini-batch go, and those make more who waited for room. mu is held.
func (s *Table) release(r *run, mb *tensor.MiniBatch) {
	wasFull := s.full(r)
	s.account(r, mb, -1)
	mb.Release()
	if !wasFull {
		return
	}
	for _, r := range s.open {
		r.wake()
	}
}

// full tells whether nothing more may be made ahead for a run. mu is held.
func (s *Table) full(r *run) bool {
	h, o := s.jobs[r.key.Job], s.owners[r.owner]
	return s.total.Bytes >= s.o.NodeBytes || h != nil && h.Bytes >= s.o.JobBytes || o != nil && s.o.OwnerBytes > 0 && o.Bytes >= s.o.OwnerBytes
}

// endIfDone ends a run that has nothing left to make, nor to give. What it gave is remembered for a while if that was not all: requests
// that overtook each other may ask for the rest. mu is held.
func (s *Table) endIfDone(r *run) {
	if r.ended || r.source || len(r.ready) > 0 || len(r.waiting) > 0 || r.out > 0 || r.failed != nil || r.lacks(r.end()) {
		return
	}
	if len(r.taken) < r.split.MiniBatches {
		s.past[r.key] = past{r.taken, time.Now()}
	}
	s.end(r, ErrStopped)
}

// past is what a run gave, and when it ended.
type past struct {
	taken map[uint64]bool
	ended time.Time
}

// end ends a run: what was made is released, who waits is told. mu is held.
func (s *Table) end(r *run, err error) {
	if r.ended {
		return
	}
	r.ended = true
	delete(s.open, r.key)
	for number, mb := range r.ready {
		delete(r.ready, number)
		s.release(r, mb)
	}
	s.closes(r.owner)
	r.tell(err)
	for p := range r.conns {
		delete(p.runs, r)
	}
	clear(r.conns)
	r.stop()
	r.wake()
}

// opened says that a run has its stream.
func (s *Table) opened(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.source = true
	s.o.Log.Debug("split opened", "digest", host.ShortDigest(r.key.Job), "split", r.key.Place, "epoch", r.key.Epoch, "drive", r.key.Drive, "number", r.next, "fence", s.o.Fence())
}

// closed says that a run's stream is closed.
func (s *Table) closed(r *run, err error) {
	if err != nil && r.ctx.Err() == nil {
		s.o.Log.Warn("split did not close well", "digest", host.ShortDigest(r.key.Job), "split", r.key.Place, "drive", r.key.Drive, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.source = false
	if d := s.demand[r.key.seat()]; d != nil && d.promised > 0 {
		d.promised--
	}
	close(s.freed)
	s.freed = make(chan struct{})
	s.endIfDone(r)
	s.changed.Broadcast()
}

// fault says that a run failed.
func (s *Table) fault(r *run, err error) {
	if r.ctx.Err() != nil || errors.Is(err, api.ErrBusy) {
		return
	}
	s.o.Log.Warn("split failed", "digest", host.ShortDigest(r.key.Job), "split", r.key.Place, "epoch", r.key.Epoch, "drive", r.key.Drive, "fence", s.o.Fence(), "error", err)
	if p := (*sdk.PanicError)(nil); errors.As(err, &p) {
		s.o.Log.Error("the worker panicked", "drive", r.key.Drive, "panic", p.Value, "stack", string(p.Stack))
	}
	s.o.Failed(r.key.Drive, err)
}

// Peer is a client's connection, and the runs that it asked of. The zero value is a new one. Guarded by Table.mu.
type Peer struct {
	runs map[*run]struct{}
	gone bool
}

// Leave says that a connection is closed.
func (s *Table) Leave(p *Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.gone = true
	for r := range p.runs {
		delete(r.conns, p)
		r.asked = time.Now()
	}
	p.runs = nil
}
