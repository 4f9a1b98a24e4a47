package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// errStopped is why a run's requests fail when the run is closed under them.
var errStopped = errors.New("the split was closed on the node: ask again")

// runsOptions are what runs need of the agent.
type runsOptions struct {
	open      opener
	failed    func(drive string, err error) // a stream failed; must not wait
	log       *slog.Logger
	fence     func() uint64 // of the latest leader, for the log
	nodeBytes int64
	jobBytes  int64
	idle      time.Duration
	abandoned time.Duration
	busyWait  time.Duration
}

// held is what a job's mini-batches take.
type held struct{ batches, bytes int64 }

// runs are the open splits of a node, and the account of what they hold.
type runs struct {
	o runsOptions

	mu       sync.Mutex
	open     map[runKey]*run
	jobs     map[dataset.Digest]*held
	total    held
	out      map[*response]struct{}      // responses that are being written
	refused  map[dataset.Digest]struct{} // jobs that are being finished
	away     map[string]error            // drives that take no splits, and why
	draining bool
	past     map[runKey]past
	demand   map[seat]*demand
	freed    chan struct{} // closed, and replaced, when a place on a drive may be free
	changed  *sync.Cond    // of mu: a run or a response ended
	closing  bool
}

func newRuns(o runsOptions) *runs {
	s := &runs{
		o: o, open: map[runKey]*run{}, jobs: map[dataset.Digest]*held{}, out: map[*response]struct{}{}, refused: map[dataset.Digest]struct{}{},
		away: map[string]error{}, past: map[runKey]past{}, demand: map[seat]*demand{}, freed: make(chan struct{}),
	}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// errDraining refuses new splits.
var errDraining = errors.New("draining: no new splits are taken")

// request asks for a mini-batch.
type request struct {
	runKey
	split  dataset.Split
	number uint64
	until  uint64 // make ahead up to here; above number
	peer   *peer  // the connection, nil if unknown
}

// response is a mini-batch on its way to a client. Call done once it was written, or was not.
type response struct {
	run   *run
	mb    *tensor.MiniBatch
	abort func() // cuts the writing off
}

// get returns a mini-batch: made before, or made now. abort is called, by another goroutine, when the response has to end.
func (s *runs) get(ctx context.Context, q request, abort func()) (*response, error) {
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
			r.forget(q.number, w)
			return nil, context.Cause(ctx)
		}
	}
	p := &response{run: r, mb: mb, abort: abort}
	s.mu.Lock()
	s.out[p] = struct{}{}
	s.mu.Unlock()
	if s.stopped(p) { // before it was entered above: nobody would cut it off
		s.done(p, false)
		return nil, errStopped
	}
	return p, nil
}

// ask finds or begins the run, and takes the mini-batch or waits for it.
func (s *runs) ask(q request) (*run, *waiter, *tensor.MiniBatch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.away[q.drive]; err != nil {
		if _, running := s.open[q.runKey]; !running || !errors.Is(err, errDraining) {
			return nil, nil, nil, err
		}
	}
	if _, ok := s.refused[q.job]; ok || s.closing {
		return nil, nil, nil, fmt.Errorf("job %s: %w", q.job, api.ErrUnknownJob)
	}
	r := s.open[q.runKey]
	if r == nil {
		if s.draining {
			return nil, nil, nil, errDraining
		}
		r = &run{
			key: q.runKey, split: q.split, all: s, next: q.number, ready: map[uint64]*tensor.MiniBatch{}, waiting: map[uint64][]*waiter{}, taken: map[uint64]bool{},
			conns: map[*peer]int{}, kick: make(chan struct{}, 1), done: make(chan struct{}),
		}
		ctx, stop := context.WithCancelCause(context.Background())
		r.ctx, r.stop = ctx, func() { stop(errStopped) }
		if p, ok := s.past[q.runKey]; ok {
			r.taken = p.taken
			delete(s.past, q.runKey)
		}
		s.open[q.runKey] = r
		go r.produce()
	}
	r.asked = time.Now()
	r.limit = min(max(q.until, q.number+1), r.end())
	if q.peer != nil && !q.peer.gone {
		if r.conns[q.peer] == 0 {
			q.peer.runs[r] = struct{}{}
		}
		r.conns[q.peer]++
	}
	if mb := r.ready[q.number]; mb != nil {
		delete(r.ready, q.number)
		r.out++
		r.wake()
		return r, nil, mb, nil
	}
	w := &waiter{got: make(chan made, 1)}
	r.waiting[q.number] = append(r.waiting[q.number], w)
	r.wake()
	return r, w, nil, nil
}

// done ends a response. What was not written is put back, for the client to ask again.
func (s *runs) done(p *response, written bool) {
	s.mu.Lock()
	delete(s.out, p)
	s.changed.Broadcast()
	s.mu.Unlock()
	s.giveBack(p.run, p.mb, written)
}

// stopped tells whether a response should end because its run did.
func (s *runs) stopped(p *response) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.run.ended
}

// giveBack ends a run's hold on a mini-batch that was taken.
func (s *runs) giveBack(r *run, mb *tensor.MiniBatch, written bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.out--
	r.asked = time.Now()
	if number := mb.Name.Number; written {
		r.taken[number] = true
		if twin := r.ready[number]; twin != nil { // made again meanwhile
			delete(r.ready, number)
			s.release(r.key.job, twin)
		}
	}
	if written || r.ended || !r.offer(mb.Name.Number, mb) {
		s.release(r.key.job, mb)
	}
	s.endIfDone(r)
	s.changed.Broadcast()
}

// add takes a mini-batch that a run made.
func (s *runs) add(r *run, mb *tensor.MiniBatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.account(r.key.job, mb, 1)
	r.next++
	if r.ended || !r.offer(mb.Name.Number, mb) {
		s.release(r.key.job, mb)
	}
}

// account adds a mini-batch to what is held, or takes it away. mu is held.
func (s *runs) account(job dataset.Digest, mb *tensor.MiniBatch, sign int64) {
	h := s.jobs[job]
	if h == nil {
		h = &held{}
		s.jobs[job] = h
	}
	n := mb.Bytes()
	h.batches += sign
	h.bytes += sign * n
	s.total.batches += sign
	s.total.bytes += sign * n
	if h.batches == 0 {
		delete(s.jobs, job)
	}
}

// release lets a mini-batch go, and those make more who waited for room. mu is held.
func (s *runs) release(job dataset.Digest, mb *tensor.MiniBatch) {
	wasFull := s.full(job)
	s.account(job, mb, -1)
	mb.Release()
	if !wasFull {
		return
	}
	for _, r := range s.open {
		r.wake()
	}
}

// full tells whether nothing more may be made ahead. mu is held.
func (s *runs) full(job dataset.Digest) bool {
	h := s.jobs[job]
	return s.total.bytes >= s.o.nodeBytes || h != nil && h.bytes >= s.o.jobBytes
}

// endIfDone ends a run that has nothing left to make, nor to give. What it gave is remembered for a while if that was not all: requests
// that overtook each other may ask for the rest. mu is held.
func (s *runs) endIfDone(r *run) {
	if r.ended || r.source || len(r.ready) > 0 || len(r.waiting) > 0 || r.out > 0 || r.failed != nil || r.lacks(r.end()) {
		return
	}
	if len(r.taken) < r.split.MiniBatches {
		s.past[r.key] = past{r.taken, time.Now()}
	}
	s.end(r, errStopped)
}

// past is what a run gave, and when it ended.
type past struct {
	taken map[uint64]bool
	ended time.Time
}

// end ends a run: what was made is released, who waits is told. mu is held.
func (s *runs) end(r *run, err error) {
	if r.ended {
		return
	}
	r.ended = true
	delete(s.open, r.key)
	for number, mb := range r.ready {
		delete(r.ready, number)
		s.release(r.key.job, mb)
	}
	r.tell(err)
	for p := range r.conns {
		delete(p.runs, r)
	}
	clear(r.conns)
	r.stop()
	r.wake()
}

// places returns what is closed when a place on a drive may have become free since.
func (s *runs) places() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freed
}

// seat names the places of a job on a drive.
type seat struct {
	job   dataset.Digest
	drive string
}

func (k runKey) seat() seat { return seat{k.job, k.drive} }

// demand is how many runs wait for a place, and how many runs are giving theirs up for it.
type demand struct{ wanted, promised int }

// wantPlace asks runs that have nothing to make, or come to that, to give a place up, until the function that it returns is called.
func (s *runs) wantPlace(k seat) (enough func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.demand[k]
	if d == nil {
		d = &demand{}
		s.demand[k] = d
	}
	d.wanted++
	for _, r := range s.open {
		if r.source && r.key.seat() == k {
			r.wake()
		}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if d.wanted--; d.wanted == 0 {
			delete(s.demand, k)
		}
	}
}

// promise tells whether a run that has nothing to make should give its place up. mu is held.
func (s *runs) promise(k seat) bool {
	d := s.demand[k]
	if d == nil || d.promised >= d.wanted {
		return false
	}
	d.promised++
	return true
}

// opened says that a run has its stream.
func (s *runs) opened(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.source = true
	s.o.log.Debug("split opened", "job", short(r.key.job), "split", r.key.place, "epoch", r.key.epoch, "drive", r.key.drive, "number", r.next, "fence", s.o.fence())
}

// closed says that a run's stream is closed.
func (s *runs) closed(r *run, err error) {
	if err != nil && r.ctx.Err() == nil {
		s.o.log.Warn("split did not close well", "job", short(r.key.job), "split", r.key.place, "drive", r.key.drive, "error", err)
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
func (s *runs) fault(r *run, err error) {
	if r.ctx.Err() != nil || errors.Is(err, api.ErrBusy) {
		return
	}
	s.o.log.Warn("split failed", "job", short(r.key.job), "split", r.key.place, "epoch", r.key.epoch, "drive", r.key.drive, "fence", s.o.fence(), "error", err)
	if p := (*sdk.PanicError)(nil); errors.As(err, &p) {
		s.o.log.Error("the worker panicked", "drive", r.key.drive, "panic", p.Value, "stack", string(p.Stack))
	}
	s.o.failed(r.key.drive, err)
}

// sweep closes runs that nobody asks of any more.
func (s *runs) sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, p := range s.past {
		if now.Sub(p.ended) > s.o.idle {
			delete(s.past, key)
		}
	}
	for _, r := range s.open {
		patience := s.o.idle
		if len(r.conns) == 0 {
			patience = s.o.abandoned
		}
		if len(r.waiting) == 0 && r.out == 0 && now.Sub(r.asked) > patience {
			s.o.log.Info("split closed: nobody asks for it", "job", short(r.key.job), "split", r.key.place, "drive", r.key.drive, "made", len(r.ready))
			s.end(r, errStopped)
		}
	}
}

// halt ends the runs that match, cuts off their responses, and waits for both.
func (s *runs) halt(match func(runKey) bool, err error) {
	s.mu.Lock()
	var ended []*run
	for key, r := range s.open {
		if match(key) {
			ended = append(ended, r)
			s.end(r, err)
		}
	}
	for p := range s.out {
		if match(p.run.key) {
			p.abort()
		}
	}
	busy := func() bool {
		for p := range s.out {
			if match(p.run.key) {
				return true
			}
		}
		for _, r := range ended {
			if r.out > 0 {
				return true
			}
		}
		return false
	}
	for busy() {
		s.changed.Wait()
	}
	s.mu.Unlock()
	for _, r := range ended {
		<-r.done
	}
}

// finish refuses a job's splits and ends those that run; then f, which may close what they used; then the job may come back.
func (s *runs) finish(job dataset.Digest, f func() error) error {
	s.mu.Lock()
	s.refused[job] = struct{}{}
	s.mu.Unlock()
	s.halt(func(k runKey) bool { return k.job == job }, fmt.Errorf("job %s: %w", job, api.ErrUnknownJob))
	err := f()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refused, job)
	for key := range s.past {
		if key.job == job {
			delete(s.past, key)
		}
	}
	return err
}

// sendAway refuses a drive's splits, with why, and ends those that run. nil takes splits again.
func (s *runs) sendAway(drive string, why error) {
	s.mu.Lock()
	if why == nil {
		delete(s.away, drive)
		s.mu.Unlock()
		return
	}
	s.away[drive] = why
	s.mu.Unlock()
	if !errors.Is(why, errDraining) {
		s.halt(func(k runKey) bool { return k.drive == drive }, why)
	}
}

// drain refuses new splits on the node, or takes them again.
func (s *runs) drain(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = on
}

// running is how many splits are open, on one drive or, with "", on all.
func (s *runs) running(drive string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for key := range s.open {
		if drive == "" || key.drive == drive {
			n++
		}
	}
	return n
}

// holding is what is buffered.
func (s *runs) holding() held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// settle waits until no split is open and no response is being written, or ctx ends.
func (s *runs) settle(ctx context.Context) error { return s.settleDrive(ctx, "") }

// settleDrive is settle for one drive.
func (s *runs) settleDrive(ctx context.Context, drive string) error {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		n := 0
		for key := range s.open {
			if drive == "" || key.drive == drive {
				n++
			}
		}
		for p := range s.out {
			if drive == "" || p.run.key.drive == drive {
				n++
			}
		}
		switch {
		case n == 0:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%d splits and responses still run: %w", n, context.Cause(ctx))
		}
		s.changed.Wait()
	}
}

// close ends everything.
func (s *runs) close() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.halt(func(runKey) bool { return true }, errStopped)
}

// peer is a client's connection, and the runs that it asked of. Guarded by runs.mu.
type peer struct {
	runs map[*run]struct{}
	gone bool
}

// leave says that a connection is closed.
func (s *runs) leave(p *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.gone = true
	for r := range p.runs {
		delete(r.conns, p)
		r.asked = time.Now()
	}
	p.runs = nil
}

// short is how logs name a job.
func short(d dataset.Digest) string { return d.String()[:12] }
