package remote

import (
	"context"
	"errors"
	"sync"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
)

// acks carries one session's acknowledgements to the ledger, in groups. One call is under way at a time;
// acknowledgements that come meanwhile go with the next call.
type acks struct {
	client      *Client
	job         string        // its id
	fullGroup   int           // as many acknowledgements are sent without delay
	delay       time.Duration // the longest that an acknowledgement waits for others
	noteDurable func(epoch uint64, numbers []dataset.Range, fence uint64)

	ctx      context.Context
	cancel   context.CancelCauseFunc
	done     chan struct{} // closed when the goroutine has ended
	sendSoon chan struct{} // a group has begun, is full, or is to be flushed

	sending sync.Mutex // held while a group is sent, and while the session changes; locked before mu

	mu       sync.Mutex
	session  []byte
	groups   []ackGroup     // to be sent, each of another epoch, in the order in which they began
	waiting  int            // acknowledgements in groups
	flushing bool           // a caller of flush waits: send without delay
	added    uint64         // acknowledgements since the start
	durable  uint64         // acknowledgements that the ledger knows, since the start
	changed  wait.Broadcast // It wakes flush when durable or err change.
	err      error          // the first error; nothing is sent after it
}

// ackGroup holds the acknowledgements of one epoch, which one call sends.
type ackGroup struct {
	epoch   uint64
	numbers []dataset.Range
	waiting int // acknowledgements, repeated ones included
}

var errAcksClosed = errors.New("the job is closed")

// startAcks starts the goroutine that sends acknowledgements. The goroutine calls noteDurable with each group that the
// ledger knows. close ends it.
func startAcks(c *Client, job string, session []byte, o AttachOptions,
	noteDurable func(uint64, []dataset.Range, uint64)) *acks {
	ctx, cancel := context.WithCancelCause(context.Background())
	a := &acks{
		client: c, job: job, session: session, fullGroup: o.Acks, delay: o.AckDelay, noteDurable: noteDurable, ctx: ctx,
		cancel: cancel,
		done:   make(chan struct{}), sendSoon: make(chan struct{}, 1),
	}
	go a.sendLoop()
	return a
}

// add takes an acknowledgement. It returns the error of an earlier acknowledgement that the control plane refused.
func (a *acks) add(epoch, number uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	g := a.group(epoch)
	g.numbers = dataset.InsertNumber(g.numbers, number)
	a.countAdded(g)
	if a.waiting == 1 || a.waiting == a.fullGroup {
		notify(a.sendSoon)
	}
	return nil
}

// addAgain takes acknowledgements that were sent before and that an earlier leader may have had in its memory alone.
func (a *acks) addAgain(epoch uint64, numbers []dataset.Range) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil || len(numbers) == 0 {
		return
	}
	g := a.group(epoch)
	g.numbers = dataset.UnionRanges(g.numbers, numbers)
	a.countAdded(g)
	notify(a.sendSoon)
}

// group returns the group of an epoch and makes it if there is none. a.mu is held.
func (a *acks) group(epoch uint64) *ackGroup {
	for i := range a.groups {
		if a.groups[i].epoch == epoch {
			return &a.groups[i]
		}
	}
	a.groups = append(a.groups, ackGroup{epoch: epoch})
	return &a.groups[len(a.groups)-1]
}

// countAdded counts an acknowledgement that waits now. a.mu is held.
func (a *acks) countAdded(g *ackGroup) {
	g.waiting++
	a.waiting++
	a.added++
}

// sendLoop sends groups: a full group at once, another group after the delay or when a caller of flush waits.
func (a *acks) sendLoop() {
	defer close(a.done)
	var delayed <-chan time.Time // since a group began; nil: no group waits
	for {
		begun, due := a.pending()
		switch {
		case !begun:
			delayed = nil
		case delayed == nil:
			delayed = time.After(a.delay)
		}
		if !due {
			select {
			case <-a.sendSoon: // a notification says only that something has changed
				continue
			case <-delayed:
			case <-a.ctx.Done():
				return
			}
		}
		delayed = nil
		a.sendGroups()
	}
}

// pending reports whether acknowledgements wait to be sent, and whether they are due without delay.
func (a *acks) pending() (begun, due bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return false, false
	}
	return a.waiting > 0, a.waiting > 0 && (a.waiting >= a.fullGroup || a.flushing)
}

// sendGroups sends the groups that wait now. Acknowledgements that come meanwhile begin other groups.
func (a *acks) sendGroups() {
	a.mu.Lock()
	count := len(a.groups)
	a.mu.Unlock()
	for range count {
		if !a.sendGroup() {
			return
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.groups) == 0 {
		a.flushing = false // a caller of flush that waits for more sets it again
	}
}

// sendGroup sends the first group and waits until it is durable. It returns false if no group can be sent.
func (a *acks) sendGroup() bool {
	a.sending.Lock()
	defer a.sending.Unlock()
	a.mu.Lock()
	if len(a.groups) == 0 || a.err != nil {
		a.mu.Unlock()
		return false
	}
	g, session := a.groups[0], a.session
	a.groups = a.groups[1:]
	a.waiting -= g.waiting
	a.mu.Unlock()
	req := &apiv1.AcknowledgeRequest{Id: a.job, Session: session, Epoch: g.epoch, Numbers: wireRanges(g.numbers)}
	resp, err := invoke(a.ctx, a.client, callTime, controlClient.Acknowledge, req)
	if err == nil {
		a.noteDurable(g.epoch, g.numbers, resp.Fence)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.durable += uint64(g.waiting)
	} else if a.err == nil {
		a.err = err
	}
	a.noteChange()
	return true
}

// noteChange wakes the callers of flush. a.mu is held.
func (a *acks) noteChange() {
	a.changed.Broadcast()
}

// wireRanges converts ranges to their wire form.
func wireRanges(ranges []dataset.Range) []*apiv1.NumberRange {
	list := make([]*apiv1.NumberRange, len(ranges))
	for i, r := range ranges {
		list[i] = &apiv1.NumberRange{From: r.From, To: r.To}
	}
	return list
}

// flush waits until every acknowledgement that was added before is durable.
func (a *acks) flush(ctx context.Context) error {
	a.mu.Lock()
	want := a.added
	a.mu.Unlock()
	for {
		a.mu.Lock()
		have, err, changed := a.durable, a.err, a.changed.Changed()
		a.flushing = a.flushing || have < want // another caller may wait for more
		a.mu.Unlock()
		switch {
		case have >= want:
			return nil
		case err != nil:
			return err
		}
		notify(a.sendSoon)
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-a.done:
			return errAcksClosed
		}
	}
}

// failed returns the error after which nothing is sent any more, or nil.
func (a *acks) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// changeSession goes on under another session of the same rank, which attach makes. Nothing is sent meanwhile. Waiting
// acknowledgements of epochs before the session's are dropped: a rank enters an epoch when the ledger knows that every
// mini-batch of the epoch before was delivered.
func (a *acks) changeSession(attach func() (session []byte, epoch uint64, err error)) error {
	a.sending.Lock()
	defer a.sending.Unlock()
	session, epoch, err := attach()
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.session = session
	var kept []ackGroup
	for _, g := range a.groups {
		if g.epoch < epoch {
			a.waiting -= g.waiting
			a.durable += uint64(g.waiting)
		} else {
			kept = append(kept, g)
		}
	}
	a.groups = kept
	a.noteChange()
	return nil
}

// close ends the goroutine. Acknowledgements that still wait are dropped.
func (a *acks) close() {
	a.cancel(errAcksClosed)
	<-a.done
}
