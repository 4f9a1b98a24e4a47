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
	"github.com/millrace/millrace/trainmgr/inputqueue"
)

// delivery is one epoch while it is delivered: a dispatcher that takes pieces from the source, a goroutine for each
// piece under way, and the input queue between them and the trainer. It is the source's Delivery.
type delivery struct {
	job    *Job
	epoch  *Epoch
	queue  *inputqueue.Queue
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the dispatcher and the goroutines of all pieces have ended
	whole  chan struct{} // closed when every mini-batch has come

	mu         sync.Mutex
	came       *dataset.Progress // mini-batches that were settled at the beginning, or put into the queue since
	left       uint64            // mini-batches that have still to come
	runningOn  map[string]int    // pieces under way, by drive
	wholeKnown bool              // whole is closed
	makers     map[uint64]string // the drives that made the mini-batches in the queue, by number
}

// errIterationEnded cancels the pieces when the trainer takes no more.
var errIterationEnded = errors.New("the iteration has ended")

// errNothingMissing ends the wait for further pieces when every mini-batch has come.
var errNothingMissing = errors.New("every mini-batch has come")

// Status implements Delivery.
func (d *delivery) Status() DeliveryStatus {
	s := DeliveryStatus{Left: d.remaining(), Queue: d.job.Queue()}
	s.Due, s.Ordered = d.queue.DueNumber()
	return s
}

// Pending implements Delivery.
func (d *delivery) Pending(from uint64) (uint64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.came.Pending(from)
}

// Whole implements Delivery.
func (d *delivery) Whole() <-chan struct{} { return d.whole }

// Reserve implements Delivery.
func (d *delivery) Reserve(ctx context.Context, number uint64, bytes int64) (release func(), err error) {
	if err := d.queue.Reserve(ctx, number, bytes); err != nil {
		return nil, err
	}
	return func() { d.queue.Release(number, bytes) }, nil
}

// startDelivery starts the dispatcher over the mini-batches that the current epoch still owes.
func (j *Job) startDelivery(ctx context.Context) (*delivery, error) {
	j.mu.Lock()
	epoch := j.epoch
	settled, err := epoch.settled()
	j.mu.Unlock()
	if err != nil {
		return nil, err
	}
	came, err := dataset.Resume(settled.Token(), settled.Token().Job, settled.Total())
	if err != nil {
		return nil, err
	}
	dueFrom := func(number uint64) uint64 {
		due, _ := settled.Pending(number)
		return due
	}
	var following func(uint64) uint64
	if j.options.Order == dataset.Deterministic {
		following = func(number uint64) uint64 { return dueFrom(number + 1) }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	d := &delivery{
		job: j, epoch: epoch, queue: inputqueue.New(j.options.QueueBytes, dueFrom(0), following, j.options.Now),
		cancel: cancel, done: make(chan struct{}), whole: make(chan struct{}),
		came: came, left: came.Total() - came.Count(), runningOn: map[string]int{},
		makers: map[uint64]string{},
	}
	d.closeIfWhole()
	pieces, err := j.source.Begin(ctx, epoch, d)
	if err != nil {
		cancel(err)
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tally.current, j.tally.begun = d.queue, j.options.Now()
	go d.dispatch(ctx, pieces)
	return d, nil
}

// stop ends the delivery's goroutines and adds its queue's statistics to the job's.
func (d *delivery) stop() {
	d.cancel(errIterationEnded)
	d.queue.Close(errIterationEnded)
	<-d.done
	d.queue.Drain()
	j := d.job
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tally.elapsed += j.options.Now().Sub(j.tally.begun)
	j.tally.epochs = append(j.tally.epochs, d.queue.Statistics())
	j.tally.current, j.tally.begun = nil, time.Time{}
}

// dispatch takes each piece in a goroutine until every mini-batch has come or a piece failed. Then it waits for the
// trainer to end the delivery, because the source keeps its leases until the trainer has acknowledged the
// mini-batches that came.
func (d *delivery) dispatch(ctx context.Context, pieces Pieces) {
	defer close(d.done)
	failure := d.takePieces(ctx, pieces)
	if left := d.remaining(); failure == nil && left > 0 {
		if failure = context.Cause(ctx); failure == nil {
			failure = fmt.Errorf("%d mini-batches of epoch %d were never handed out", left, d.epoch.Number)
		}
	}
	d.queue.Close(failure)
	<-ctx.Done()
	if err := pieces.Close(); err != nil {
		d.job.options.Logger.Warn("end of an epoch's delivery", "error", err)
	}
}

// takePieces takes pieces until none is left to start, waits until they have ended, and returns the first error that
// ends the job.
func (d *delivery) takePieces(ctx context.Context, pieces Pieces) (failure error) {
	asking, stopAsking := context.WithCancelCause(ctx)
	defer stopAsking(nil)
	go func() { // ends with asking, which ends with this function
		select {
		case <-d.whole:
			stopAsking(errNothingMissing)
		case <-asking.Done():
		}
	}()
	var (
		running   sync.WaitGroup
		firstOnly sync.Once
	)
	fail := func(err error) {
		firstOnly.Do(func() {
			failure = err
			d.cancel(err)
		})
	}
	for asking.Err() == nil {
		piece, err := pieces.Next(asking)
		if err != nil {
			if !errors.Is(err, io.EOF) && asking.Err() == nil {
				fail(err)
			}
			break
		}
		d.noteStart(piece.Drive())
		running.Go(func() {
			err := d.takePiece(ctx, piece)
			d.noteEnd(piece.Drive())
			if err = piece.End(err); err != nil {
				fail(err)
			}
		})
	}
	running.Wait()
	return failure
}

// noteStart counts a piece under way, and the most drives that ran at once.
func (d *delivery) noteStart(drive string) {
	d.mu.Lock()
	d.runningOn[drive]++
	drives := len(d.runningOn)
	d.mu.Unlock()
	j := d.job
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tally.busiestDrives = max(j.tally.busiestDrives, drives)
}

func (d *delivery) noteEnd(drive string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runningOn[drive]--; d.runningOn[drive] == 0 {
		delete(d.runningOn, drive)
	}
}

// takePiece puts every mini-batch of a piece that has still to come into the input queue. It is the worker of PreSto
// IV-B.
func (d *delivery) takePiece(ctx context.Context, piece Piece) (err error) {
	stream, err := piece.Open(ctx)
	if err != nil {
		return piece.Wrap(err)
	}
	defer func() {
		if closeErr := stream.Close(); closeErr != nil {
			err = errors.Join(err, piece.Wrap(closeErr))
		}
	}()
	numbers := piece.Numbers()
	for next := numbers.From; ; {
		mb, err := stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			return d.checkBrought(piece)
		}
		if err != nil {
			return piece.Wrap(err)
		}
		got := mb.Name
		want := tensor.Name{Job: d.job.digest, Epoch: d.epoch.Number, Number: got.Number}
		if got == want && got.Number >= numbers.To {
			mb.Release()
			return fmt.Errorf("%v: mini-batch %v came beyond [%d, %d)", piece, got, numbers.From, numbers.To)
		}
		if got != want || got.Number < next {
			mb.Release()
			want.Number = next
			return fmt.Errorf("%v: mini-batch %v came where %v was due", piece, got, want)
		}
		next = got.Number + 1
		if err := d.put(ctx, mb, piece.Drive()); err != nil {
			return piece.Wrap(err)
		}
	}
}

// checkBrought returns an error if a piece ended without a mini-batch that it had to bring.
func (d *delivery) checkBrought(piece Piece) error {
	numbers := piece.Numbers()
	if missing, ok := d.Pending(numbers.From); ok && missing < numbers.To {
		return fmt.Errorf("%v: it ended before mini-batch %d of [%d, %d)", piece, missing, numbers.From, numbers.To)
	}
	return nil
}

// put puts a mini-batch of a drive into the queue, or releases it if the same mini-batch has come before.
func (d *delivery) put(ctx context.Context, mb *tensor.MiniBatch, drive string) error {
	if !d.claim(mb.Name.Number, drive) {
		mb.Release()
		return nil
	}
	// The last mini-batch closes whole only when it is in the queue. A put fails only when the whole delivery fails.
	if err := d.queue.Put(ctx, mb); err != nil {
		mb.Release()
		return err
	}
	d.closeIfWhole()
	return nil
}

// claim records that a mini-batch has come. It returns false if the mini-batch came before.
func (d *delivery) claim(number uint64, drive string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.came.Acked(number) || d.came.Ack(number) != nil {
		return false
	}
	d.left--
	d.makers[number] = drive
	return true
}

// takeMaker returns the drive that made a mini-batch which has left the queue.
func (d *delivery) takeMaker(number uint64) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	drive := d.makers[number]
	delete(d.makers, number)
	return drive
}

// remaining returns how many mini-batches have still to come.
func (d *delivery) remaining() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left
}

// closeIfWhole closes whole if every mini-batch has come.
func (d *delivery) closeIfWhole() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left == 0 && !d.wholeKnown {
		d.wholeKnown = true
		close(d.whole)
	}
}
