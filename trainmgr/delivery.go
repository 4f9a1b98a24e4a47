package trainmgr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// Delivery is one epoch while it is delivered: a dispatcher that takes pieces from the source, a worker a running piece,
// and the input queue between them and the trainer. A Source sees it through its methods, from any goroutine.
type Delivery struct {
	job    *Job
	epoch  *Epoch
	before *dataset.Progress // what needed not come when it began; not changed
	queue  *queue
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the dispatcher and all workers have ended
	whole  chan struct{} // closed when everything has come

	mu     sync.Mutex
	came   *dataset.Progress // before, and what was put into the queue since
	left   uint64            // mini-batches that have not come
	drives map[string]int    // pieces that run, by drive
}

// errStopped cancels the workers when the trainer takes no more.
var errStopped = errors.New("the iteration has ended")

// errWhole ends the asking for pieces when everything has come.
var errWhole = errors.New("every mini-batch has come")

// Epoch returns the epoch that is delivered.
func (d *Delivery) Epoch() *Epoch { return d.epoch }

// Wanted reports whether a mini-batch has still to come: it is owned, was not acknowledged, and is not in the queue.
func (d *Delivery) Wanted(number uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return number < d.came.Total() && !d.came.Acked(number)
}

// Left returns how many mini-batches have still to come.
func (d *Delivery) Left() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left
}

// Whole is closed once every mini-batch has come: a piece that still runs can bring nothing new.
func (d *Delivery) Whole() <-chan struct{} { return d.whole }

// Due returns the number that the trainer waits for next, in deterministic order; false in any other order.
func (d *Delivery) Due() (number uint64, ordered bool) {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	return d.queue.due, d.queue.ordered
}

// Reserve waits until a mini-batch of about so many bytes fits the input queue, and keeps room for it: a source that
// fetches from afar asks before it does, so that what is on its way is bounded too. Free gives the room back, once the mini-batch is in the queue
// or will not come.
func (d *Delivery) Reserve(ctx context.Context, number uint64, bytes int64) error {
	return d.queue.reserve(ctx, number, bytes)
}

// Free gives back room that Reserve kept.
func (d *Delivery) Free(bytes int64) { d.queue.release(bytes) }

// Queue returns the state of the job's input queue.
func (d *Delivery) Queue() QueueStatus { return d.job.Queue() }

// startDelivery starts the dispatcher over what the current epoch still owes.
func (j *Job) startDelivery(ctx context.Context) (*Delivery, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before, err := j.epoch.pending()
	if err != nil {
		return nil, err
	}
	came, err := dataset.Resume(before.Token(), before.Token().Job, before.Total())
	if err != nil {
		return nil, err
	}
	following := func(n uint64) uint64 {
		n, _ = before.Pending(n)
		return n
	}
	var after func(uint64) uint64
	if j.o.Order == dataset.Deterministic {
		after = func(n uint64) uint64 { return following(n + 1) }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	d := &Delivery{
		job: j, epoch: j.epoch, before: before, came: came, left: came.Total() - came.Count(), drives: map[string]int{},
		queue: newQueue(j.o.QueueBytes, following(0), after), cancel: cancel, done: make(chan struct{}), whole: make(chan struct{}),
	}
	if d.left == 0 {
		close(d.whole)
	}
	pieces, err := j.source.Begin(ctx, d)
	if err != nil {
		cancel(err)
		return nil, err
	}
	j.tally.current, j.tally.begun = d.queue, time.Now()
	go d.dispatch(ctx, pieces)
	return d, nil
}

// stop ends the delivery's goroutines and accounts its queue.
func (d *Delivery) stop() {
	d.cancel(errStopped)
	d.queue.close(errStopped)
	<-d.done
	d.queue.drain()
	j := d.job
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tally.elapsed += time.Since(j.tally.begun)
	j.tally.epochs = append(j.tally.epochs, d.queue.statistics())
	j.tally.current, j.tally.begun = nil, time.Time{}
}

// dispatch starts a worker for every piece until everything has come, or something failed; then it waits for the
// trainer to end the delivery, since the source keeps what it holds until what came is acknowledged.
func (d *Delivery) dispatch(ctx context.Context, pieces Pieces) {
	defer close(d.done)
	asking, enough := context.WithCancelCause(ctx)
	defer enough(nil)
	go func() { // ends with asking, which ends with this function
		select {
		case <-d.whole:
			enough(errWhole)
		case <-asking.Done():
		}
	}()
	var (
		workers sync.WaitGroup
		once    sync.Once
		failure error
	)
	fail := func(err error) {
		once.Do(func() {
			failure = err
			d.cancel(err)
		})
	}
	for asking.Err() == nil {
		p, err := pieces.Next(asking)
		if err != nil {
			if !errors.Is(err, io.EOF) && asking.Err() == nil {
				fail(err)
			}
			break
		}
		d.started(p.Drive())
		workers.Go(func() {
			err := d.work(ctx, p)
			d.ended(p.Drive())
			if err = p.End(err); err != nil {
				fail(err)
			}
		})
	}
	workers.Wait()
	if left := d.Left(); failure == nil && left > 0 {
		if failure = context.Cause(ctx); failure == nil {
			failure = fmt.Errorf("%d mini-batches of epoch %d were never handed out", left, d.epoch.Number)
		}
	}
	d.queue.close(failure)
	<-ctx.Done()
	if err := pieces.Close(); err != nil {
		d.job.o.Logger.Warn("end of an epoch's delivery", "error", err)
	}
}

func (d *Delivery) started(drive string) {
	d.mu.Lock()
	d.drives[drive]++
	n := len(d.drives)
	d.mu.Unlock()
	d.job.noteActive(n)
}

func (d *Delivery) ended(drive string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.drives[drive]--; d.drives[drive] == 0 {
		delete(d.drives, drive)
	}
}

// noteActive keeps the most drives that ran at once.
func (j *Job) noteActive(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tally.busiest = max(j.tally.busiest, n)
}

// claim takes a number that has to come; false if it came already.
func (d *Delivery) claim(number uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.came.Acked(number) || d.came.Ack(number) != nil {
		return false
	}
	d.left--
	return true
}

// put puts a mini-batch into the queue unless it came already.
func (d *Delivery) put(ctx context.Context, mb *tensor.MiniBatch) error {
	if !d.claim(mb.Name.Number) {
		mb.Release()
		return nil
	}
	// The last to come closes whole only when it is in the queue. A put fails only when the whole delivery does.
	if err := d.queue.put(ctx, mb); err != nil {
		mb.Release()
		return err
	}
	if d.Left() == 0 {
		d.mu.Lock()
		defer d.mu.Unlock()
		select {
		case <-d.whole:
		default:
			close(d.whole)
		}
	}
	return nil
}

// work runs one piece: PreSto's worker. It puts every mini-batch that has still to come into the input queue.
func (d *Delivery) work(ctx context.Context, p Piece) (err error) {
	stream, err := p.Open(ctx)
	if err != nil {
		return place(p, err)
	}
	defer func() {
		if cerr := stream.Close(); cerr != nil {
			err = errors.Join(err, place(p, cerr))
		}
	}()
	numbers := p.Numbers()
	for next := numbers.From; ; {
		mb, err := stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			return d.brought(p)
		}
		if err != nil {
			return place(p, err)
		}
		got := mb.Name
		want := tensor.Name{Job: d.job.digest, Epoch: d.epoch.Number, Number: got.Number}
		if got != want || got.Number < next || got.Number >= numbers.To {
			mb.Release()
			want.Number = next
			return fmt.Errorf("%v: mini-batch %v came where %v was due", p, got, want)
		}
		next = got.Number + 1
		if err := d.put(ctx, mb); err != nil {
			return place(p, err)
		}
	}
}

// place says of which piece an error is.
func place(p Piece, err error) error {
	if w, ok := p.(interface{ Wrap(err error) error }); ok {
		return w.Wrap(err)
	}
	return fmt.Errorf("%v: %w", p, err)
}

// brought checks that a piece that has ended brought what it should.
func (d *Delivery) brought(p Piece) error {
	numbers := p.Numbers()
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, ok := d.came.Pending(numbers.From); ok && n < numbers.To {
		return fmt.Errorf("%v: it ended before mini-batch %d of [%d, %d)", p, n, numbers.From, numbers.To)
	}
	return nil
}
