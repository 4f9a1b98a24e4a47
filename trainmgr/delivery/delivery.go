package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/inputqueue"
)

// Options are what a Delivery needs of its job. All are required.
type Options struct {
	Job        dataset.Digest
	Order      dataset.Order
	QueueBytes int64              // bound of the input queue
	Memory     *tensor.Memory     // Mini-batches that are joined lie in it.
	Queue      func() QueueStatus // Queue returns the state of the job's input queue, over all epochs.
	Now        func() time.Time
	Logger     *slog.Logger
	// Begin starts to hand out the pieces of an epoch.
	Begin func(ctx context.Context, epoch *Epoch, view View) (Pieces, error)
}

// Delivery is one epoch while it is delivered: a dispatcher that takes pieces from the source, a goroutine for each
// piece under way, and the input queue between them and the trainer. It is the source's View. What pieces bring is
// counted in fragments of the plan, and what the trainer takes in mini-batches. A mini-batch of several fragments is
// joined from them when the last one has come.
type Delivery struct {
	options Options
	epoch   *Epoch
	pieces  Pieces
	queue   *inputqueue.Queue
	ctx     context.Context // Pieces run until ctx ends.
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when the dispatcher and the goroutines of all pieces have ended
	whole   chan struct{} // closed when every mini-batch has come

	mu         sync.Mutex
	came       *dataset.Progress  // fragments that were settled at the beginning, or put into the queue since
	left       uint64             // mini-batches that have still to come
	runningOn  map[string]int     // pieces under way, by drive
	busiest    int                // most drives at once
	wholeKnown bool               // whole is closed
	makers     map[uint64][]Maker // the drives that made the mini-batches in the queue, by number
	joiner     joiner
}

// Maker is a drive that made one fragment of a mini-batch.
type Maker struct {
	Drive string
	Rows  int
	First bool // It made the mini-batch's first row.
}

// errIterationEnded cancels the pieces when the trainer takes no more.
var errIterationEnded = errors.New("the iteration has ended")

// errNothingMissing ends the wait for further pieces when every mini-batch has come.
var errNothingMissing = errors.New("every mini-batch has come")

// Status implements View.
func (d *Delivery) Status() Status {
	s := Status{Left: d.remaining(), Queue: d.options.Queue()}
	s.Due, s.Ordered = d.queue.DueNumber()
	return s
}

// Pending implements View.
func (d *Delivery) Pending(from uint64) (uint64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.came.Pending(from)
}

// Whole implements View.
func (d *Delivery) Whole() <-chan struct{} { return d.whole }

// Reserve implements View.
func (d *Delivery) Reserve(ctx context.Context, number uint64, bytes int64) (release func(), err error) {
	fragment, err := d.epoch.Plan.Fragment(number)
	if err != nil {
		return nil, err
	}
	if err := d.queue.Reserve(ctx, fragment, bytes); err != nil {
		return nil, err
	}
	return func() { d.queue.Release(fragment, bytes) }, nil
}

// New begins to hand out the mini-batches that an epoch still owes. settled are those that need not come, as
// Epoch.Settled returns them. The caller calls Start and then Stop.
func New(ctx context.Context, epoch *Epoch, settled *dataset.Progress, o Options) (*Delivery, error) {
	came, err := epoch.fragmentsOf(settled)
	if err != nil {
		return nil, err
	}
	dueFrom := func(number uint64) uint64 {
		due, _ := settled.Pending(number)
		return due
	}
	var following func(uint64) uint64
	if o.Order == dataset.Deterministic {
		following = func(number uint64) uint64 { return dueFrom(number + 1) }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	d := &Delivery{
		options: o, epoch: epoch, queue: inputqueue.New(o.QueueBytes, dueFrom(0), following, o.Now),
		ctx: ctx, cancel: cancel, done: make(chan struct{}), whole: make(chan struct{}),
		came: came, left: settled.Total() - settled.Count(), runningOn: map[string]int{},
		makers: map[uint64][]Maker{}, joiner: joiner{waiting: map[uint64][]*tensor.MiniBatch{}},
	}
	d.closeIfWhole()
	if d.pieces, err = o.Begin(ctx, epoch, d); err != nil {
		cancel(err)
		return nil, err
	}
	return d, nil
}

// Start starts to take pieces, in goroutines that end before Stop returns.
func (d *Delivery) Start() { go d.dispatch(d.ctx, d.pieces) }

// Stop ends the delivery's goroutines and releases what the trainer has not taken.
func (d *Delivery) Stop() {
	d.cancel(errIterationEnded)
	d.queue.Close(errIterationEnded)
	<-d.done
	d.queue.Drain()
	d.joiner.drain()
}

// Next waits for the next mini-batch of the input queue, and returns it with the drives that made it. It returns io.EOF
// when every mini-batch of the epoch was taken.
func (d *Delivery) Next(ctx context.Context) (*tensor.MiniBatch, []Maker, error) {
	mb, err := d.queue.Get(ctx)
	if err != nil {
		return nil, nil, err
	}
	return mb, d.takeMakers(mb.Name.Number), nil
}

// Statistics returns the statistics of the input queue.
func (d *Delivery) Statistics() inputqueue.Statistics { return d.queue.Statistics() }

// BusiestDrives returns the most drives that have run at once.
func (d *Delivery) BusiestDrives() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.busiest
}

// dispatch takes each piece in a goroutine until every mini-batch has come or a piece failed. Then it waits for the
// trainer to end the delivery, because the source keeps its leases until the trainer has acknowledged the
// mini-batches that came.
func (d *Delivery) dispatch(ctx context.Context, pieces Pieces) {
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
		d.options.Logger.Warn("end of an epoch's delivery", "error", err)
	}
}

// takePieces takes pieces until none is left to start, waits until they have ended, and returns the first error that
// ends the job.
func (d *Delivery) takePieces(ctx context.Context, pieces Pieces) (failure error) {
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
func (d *Delivery) noteStart(drive string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runningOn[drive]++
	d.busiest = max(d.busiest, len(d.runningOn))
}

func (d *Delivery) noteEnd(drive string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runningOn[drive]--; d.runningOn[drive] == 0 {
		delete(d.runningOn, drive)
	}
}

// takePiece puts every fragment of a piece that has still to come into the input queue. It is the worker of PreSto
// IV-B.
func (d *Delivery) takePiece(ctx context.Context, piece Piece) (err error) {
	stream, err := piece.Open(ctx)
	if err != nil {
		return piece.Wrap(err)
	}
	defer func() {
		if closeErr := stream.Close(); closeErr != nil {
			err = errors.Join(err, piece.Wrap(closeErr))
		}
	}()
	for next := piece.Numbers().From; ; {
		mb, err := stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			return d.checkBrought(piece)
		}
		if err != nil {
			return piece.Wrap(err)
		}
		fragment, err := d.checkFragment(mb, piece.Numbers(), next)
		if err != nil {
			mb.Release()
			return fmt.Errorf("%v: %w", piece, err)
		}
		next = fragment.Number + 1
		if err := d.put(ctx, fragment, mb, piece.Drive()); err != nil {
			return piece.Wrap(err)
		}
	}
}

// checkFragment returns the fragment of the plan that mb is. It must be one of a piece's numbers, next or a later one.
func (d *Delivery) checkFragment(mb *tensor.MiniBatch, numbers dataset.Range, next uint64) (dataset.Fragment, error) {
	plan, got := d.epoch.Plan, mb.Name
	fragment, err := plan.FragmentAt(got.Number, mb.Fragment.Index)
	want := tensor.Name{Job: d.options.Job, Epoch: d.epoch.Number, Number: got.Number}
	switch {
	case got == want && (err != nil || fragment.Number >= numbers.To):
		return fragment, fmt.Errorf("mini-batch %v came beyond [%d, %d)", placed(got, mb.Fragment), numbers.From,
			numbers.To)
	case got != want || fragment.Number < next:
		due, place := placeOf(plan, next)
		want.Number = due.MiniBatch
		return fragment, fmt.Errorf("mini-batch %v came where %v was due", placed(got, mb.Fragment), placed(want, place))
	}
	_, place := placeOf(plan, fragment.Number)
	if place != mb.Fragment || mb.Rows != fragment.Rows {
		return fragment, fmt.Errorf("mini-batch %v came with %d rows, want %v with %d", placed(got, mb.Fragment),
			mb.Rows, placed(want, place), fragment.Rows)
	}
	return fragment, nil
}

// placed names a mini-batch, or a fragment of it, for errors.
func placed(name tensor.Name, place tensor.Fragment) string {
	if place == (tensor.Fragment{}) {
		return name.String()
	}
	return fmt.Sprintf("%v (fragment %d, from 0, of %d)", name, place.Index, place.Of)
}

// checkBrought returns an error if a piece ended without a fragment that it had to bring.
func (d *Delivery) checkBrought(piece Piece) error {
	numbers := piece.Numbers()
	if missing, ok := d.Pending(numbers.From); ok && missing < numbers.To {
		return fmt.Errorf("%v: it ended before mini-batch %d of [%d, %d)", piece, missing, numbers.From, numbers.To)
	}
	return nil
}

// put puts a fragment of a drive into the queue, or releases it if the same fragment has come before. If the fragment
// is not the whole mini-batch, it waits for its partners.
func (d *Delivery) put(ctx context.Context, fragment dataset.Fragment, mb *tensor.MiniBatch, drive string) (err error) {
	if !d.claim(fragment, Maker{drive, mb.Rows, fragment.Offset == 0}) {
		mb.Release()
		return nil
	}
	// The last mini-batch closes whole only when it is in the queue. A put fails only when the whole delivery fails.
	if mb.Fragment == (tensor.Fragment{}) {
		err = d.queue.Put(ctx, fragment, mb)
	} else {
		err = d.queue.Hold(ctx, fragment, mb.Bytes())
	}
	if err != nil {
		mb.Release()
		return err
	}
	if mb.Fragment != (tensor.Fragment{}) {
		if err := d.join(mb); err != nil {
			d.cancel(err) // no other piece brings the fragments again
			return err
		}
	}
	d.closeIfWhole()
	return nil
}

// join keeps a fragment for which the queue has room. If it is the last one of its mini-batch, join puts the mini-batch
// into the queue. A fragment that waits does so in memory of its own: a drive lends little memory, and cannot be given
// up while some of it is lent, but the partner may be made only when another drive was given up.
func (d *Delivery) join(part *tensor.MiniBatch) error {
	if !d.completes(part) {
		part = part.Own()
	}
	d.mu.Lock()
	parts := d.joiner.add(part)
	d.mu.Unlock()
	if parts == nil {
		return nil
	}
	defer releaseAll(parts)
	whole, err := d.options.Memory.Join(parts)
	if err != nil {
		return err
	}
	d.queue.PutJoined(whole)
	return nil
}

// completes reports whether all other fragments of a fragment's mini-batch wait.
func (d *Delivery) completes(part *tensor.MiniBatch) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.joiner.completes(part)
}

// claim records that a fragment has come. It returns false if the fragment came before.
func (d *Delivery) claim(f dataset.Fragment, by Maker) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.came.Acked(f.Number) || d.came.Ack(f.Number) != nil {
		return false
	}
	all := d.epoch.Plan.FragmentsOf(dataset.Range{From: f.MiniBatch, To: f.MiniBatch + 1})
	if missing, ok := d.came.Pending(all.From); !ok || missing >= all.To {
		d.left--
	}
	d.makers[f.MiniBatch] = append(d.makers[f.MiniBatch], by)
	return true
}

// takeMakers returns the drives that made a mini-batch which has left the queue.
func (d *Delivery) takeMakers(number uint64) []Maker {
	d.mu.Lock()
	defer d.mu.Unlock()
	makers := d.makers[number]
	delete(d.makers, number)
	return makers
}

// remaining returns how many mini-batches have still to come.
func (d *Delivery) remaining() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left
}

// closeIfWhole closes whole if every mini-batch has come.
func (d *Delivery) closeIfWhole() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left == 0 && !d.wholeKnown {
		d.wholeKnown = true
		close(d.whole)
	}
}
