package splits

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// jump is how many mini-batches a run makes unasked to reach one that is asked for; past that it opens the split anew there.
const jump = 8

// company is how long a stream is not opened in the middle of a split's rest: who asks for several mini-batches at once does so on several
// connections, and the first to be heard of is seldom the first of them. Opened there, the stream would be opened a second time for those
// before it, and what was made be made again.
const company = 2 * time.Millisecond

// Key names a split of a job's epoch on a drive.
type Key struct {
	Job   dataset.Digest
	Epoch uint64
	Drive string
	Place int // of the split in the epoch's plan
}

// run is an open split: a producer that pulls mini-batches from a stream, and the mini-batches that were made and not
// taken. Its fields are guarded by Table.mu, but for those that say otherwise.
type run struct {
	key   Key
	split dataset.Split
	all   *Table
	owner string // for whom it counts; empty: for nobody

	next    uint64                       // number that the stream gives next
	limit   uint64                       // made ahead up to here, exclusive
	ready   map[uint64]*tensor.MiniBatch // made and not taken
	taken   map[uint64]bool              // written: not made ahead again, and not kept when they are made on the way to another
	waiting map[uint64][]*waiter
	out     int           // taken and not given back
	conns   map[*Peer]int // connections that asked, and are open
	asked   time.Time     // last request
	failed  error         // of the last attempt; the next request makes another
	source  bool          // the stream is open
	opened  bool          // the stream was open before: it would go on at next
	alone   bool          // the last step was to defer, and nobody came
	ended   bool          // no more requests are taken
	over    bool          // its goroutine has ended

	kick chan struct{} // something changed; capacity 1
	ctx  context.Context
	stop context.CancelFunc
}

// waiter is a request that waits for its mini-batch.
type waiter struct {
	got chan made // capacity 1
}

// made is what a request gets.
type made struct {
	mb  *tensor.MiniBatch
	err error
}

func (r *run) end() uint64 { return r.split.FirstNumber + uint64(r.split.MiniBatches) }

// wake lets the producer look again.
func (r *run) wake() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// step is what a producer does next.
type step int

const (
	stepWait  step = iota // until something changes
	stepDefer             // for company, or until something changes
	stepOpen              // the stream, at run.next
	stepMake              // a mini-batch
	stepClose             // the stream: there is nothing to make for it
	stepEnd
)

func (s step) String() string { return [...]string{"wait", "defer", "open", "make", "close", "end"}[s] }

// decide says what the producer does next. It is the only place where a run's course is set. Table.mu is held.
func (r *run) decide() step {
	least, wanted := r.least()
	switch {
	case r.ended:
		return stepEnd
	case wanted && !r.source && !r.alone && r.before(least):
		return stepDefer
	case wanted && (least < r.next || least-r.next > jump || !r.source):
		r.next, r.failed = least, nil
		return stepOpen
	case wanted:
		return stepMake
	case r.source && !r.lacks(r.end()):
		return stepClose
	case r.source && !r.lacks(r.limit):
		if r.all.promise(r.key.seat()) {
			return stepClose
		}
		return stepWait // where the split can go on from, should it be asked to
	case r.failed == nil && r.lacks(r.limit) && !r.all.full(r):
		if r.source {
			return stepMake
		}
		return stepOpen
	}
	return stepWait
}

// lacks tells whether a mini-batch from the next on, below to, was neither made nor taken. Table.mu is held.
func (r *run) lacks(to uint64) bool {
	if len(r.taken) == r.split.MiniBatches {
		return false
	}
	for n := r.next; n < to; n++ {
		if !r.taken[n] && r.ready[n] == nil {
			return true
		}
	}
	return false
}

// before tells whether a mini-batch before n, from where the stream would go on, was neither made nor taken. Table.mu is held.
func (r *run) before(n uint64) bool {
	from := r.split.FirstNumber
	if r.opened {
		from = r.next
	}
	for ; from < n; from++ {
		if !r.taken[from] && r.ready[from] == nil {
			return true
		}
	}
	return false
}

// least is the smallest number that is waited for and not made.
func (r *run) least() (n uint64, ok bool) {
	for number := range r.waiting {
		if !ok || number < n {
			n, ok = number, true
		}
	}
	return n, ok
}

// produce is the run's goroutine.
func (r *run) produce() {
	var s api.Stream
	closeStream := func() {
		if s == nil {
			return
		}
		err := guarded(s.Close)
		s = nil
		r.all.closed(r, err)
	}
	defer closeStream()
	var patience <-chan time.Time // of stepDefer
	for {
		r.all.mu.Lock()
		do, number := r.decide(), r.next
		r.alone, r.opened = false, r.opened || do == stepOpen
		r.all.mu.Unlock()
		if do != stepDefer {
			patience = nil
		}
		switch do {
		case stepEnd:
			return
		case stepClose:
			closeStream()
		case stepWait:
			select {
			case <-r.kick:
			case <-r.ctx.Done():
			}
		case stepDefer:
			if patience == nil {
				patience = time.After(company)
			}
			select {
			case <-r.kick:
			case <-patience:
				r.all.mu.Lock()
				r.alone = true
				r.all.mu.Unlock()
			case <-r.ctx.Done():
			}
		case stepOpen:
			closeStream()
			var err error
			if s, err = r.open(number); err != nil {
				r.fail(err)
			}
		case stepMake:
			mb, err := r.take(s)
			if err == nil {
				r.all.add(r, mb)
				continue
			}
			closeStream()
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("the split ended at mini-batch %d of %d: %w", number-r.split.FirstNumber, r.split.MiniBatches, io.ErrUnexpectedEOF)
			}
			r.fail(err)
		}
	}
}

// open opens the split at a mini-batch. Where the drive has no place it waits a while for one.
func (r *run) open(number uint64) (s api.Stream, err error) {
	order := api.SplitRequest{Job: r.key.Job, Drive: r.key.Drive, Epoch: r.key.Epoch, Split: r.split, From: int(number - r.split.FirstNumber)}
	deadline := time.Now().Add(r.all.o.BusyWait)
	enough := func() {}
	defer func() { enough() }()
	for first := true; ; first = false {
		freed := r.all.places()
		err = guarded(func() error {
			s, err = r.all.o.Open(r.ctx, order)
			return err
		})
		if err == nil {
			r.all.opened(r)
			return s, nil
		}
		left := time.Until(deadline)
		if !errors.Is(err, api.ErrBusy) || left <= 0 {
			return nil, err
		}
		if first {
			enough = r.all.wantPlace(r.key.seat())
		}
		wait := time.NewTimer(left)
		select {
		case <-freed:
		case <-wait.C:
		case <-r.ctx.Done():
		}
		wait.Stop()
		if r.ctx.Err() != nil {
			return nil, context.Cause(r.ctx)
		}
	}
}

// take pulls the next mini-batch.
func (r *run) take(s api.Stream) (mb *tensor.MiniBatch, err error) {
	err = guarded(func() error {
		mb, err = s.Next(r.ctx)
		return err
	})
	if err == nil && mb.Name.Number != r.next { // only the producer changes next
		defer mb.Release()
		return nil, fmt.Errorf("the drive made mini-batch %d where %d was next", mb.Name.Number, r.next)
	}
	return mb, err
}

// guarded turns a panic into an error, an *sdk.PanicError.
func guarded(f func() error) (err error) {
	defer sdk.Contain("the worker", &err)
	return f()
}

// fail tells all who wait.
func (r *run) fail(err error) {
	if r.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = context.Cause(r.ctx)
	}
	r.all.mu.Lock()
	r.failed = err
	r.tell(err)
	r.all.mu.Unlock()
	r.all.fault(r, err)
}

// tell ends every waiting request with an error. Table.mu is held.
func (r *run) tell(err error) {
	for _, list := range r.waiting {
		for _, w := range list {
			w.got <- made{err: err}
		}
	}
	clear(r.waiting)
}

// offer gives a mini-batch to who waits for it, or keeps it. It reports whether the mini-batch was wanted or kept. Table.mu is held.
func (r *run) offer(number uint64, mb *tensor.MiniBatch) bool {
	if list := r.waiting[number]; len(list) > 0 {
		delete(r.waiting, number)
		for i, w := range list {
			if i > 0 {
				mb.Retain()
				r.all.account(r, mb, 1)
			}
			r.out++
			w.got <- made{mb: mb}
		}
		return true
	}
	if r.ended || r.ready[number] != nil || r.taken[number] {
		return false
	}
	r.ready[number] = mb
	return true
}

// forget takes a request back whose client is gone. What it was given meanwhile is put back.
func (r *run) forget(number uint64, w *waiter) {
	r.all.mu.Lock()
	list := r.waiting[number]
	if i := slices.Index(list, w); i >= 0 {
		if list = slices.Delete(list, i, i+1); len(list) == 0 {
			delete(r.waiting, number)
		} else {
			r.waiting[number] = list
		}
	}
	r.all.mu.Unlock()
	select {
	case m := <-w.got:
		if m.mb != nil {
			r.all.giveBack(r, m.mb, false)
		}
	default:
	}
}
