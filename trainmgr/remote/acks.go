package remote

import (
	"context"
	"errors"
	"sync"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/sdk/dataset"
)

// acks carries one session's acknowledgements to the ledger, in groups: one call is under way at a time, and what comes
// meanwhile goes with the next.
type acks struct {
	client *Client
	id     string
	most   int           // acknowledgements that do not wait for delay
	delay  time.Duration // the longest that one waits
	landed func(epoch uint64, runs []dataset.Range, fence uint64)

	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}
	kick   chan struct{}

	sending sync.Mutex // held while a group is sent, and while the session changes; before mu

	mu      sync.Mutex
	session []byte
	groups  []group       // waiting, each of another epoch, in the order in which they began
	waiting int           // acknowledgements in groups
	hurry   bool          // somebody waits in flush: no more company
	added   uint64        // ever
	durable uint64        // of those
	changed chan struct{} // closed and renewed when durable or err change
	err     error         // the first; nothing is sent after it
}

// group is what goes with one call: it is of one epoch.
type group struct {
	epoch   uint64
	runs    []dataset.Range // ascending
	waiting int
}

var errAcksClosed = errors.New("the job is closed")

// startAcks starts the goroutine that sends; close ends it. landed is called from there.
func startAcks(c *Client, id string, session []byte, most int, delay time.Duration, landed func(uint64, []dataset.Range, uint64)) *acks {
	ctx, cancel := context.WithCancelCause(context.Background())
	a := &acks{client: c, id: id, session: session, most: most, delay: delay, landed: landed, ctx: ctx, cancel: cancel,
		done: make(chan struct{}), kick: make(chan struct{}, 1), changed: make(chan struct{})}
	go a.run()
	return a
}

// add takes an acknowledgement. The error is of an earlier one that the control plane refused.
func (a *acks) add(epoch, number uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	g := a.group(epoch)
	g.runs = dataset.InsertNumber(g.runs, number)
	a.count(g)
	if a.waiting == 1 || a.waiting == a.most {
		a.wake()
	}
	return nil
}

// again sends acknowledgements once more that an earlier leader may have had in its memory alone.
func (a *acks) again(epoch uint64, runs []dataset.Range) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil || len(runs) == 0 {
		return
	}
	g := a.group(epoch)
	g.runs = dataset.UnionRanges(g.runs, runs)
	a.count(g)
	a.wake()
}

// group finds or makes the group of an epoch. a.mu is held.
func (a *acks) group(epoch uint64) *group {
	for i := range a.groups {
		if a.groups[i].epoch == epoch {
			return &a.groups[i]
		}
	}
	a.groups = append(a.groups, group{epoch: epoch})
	return &a.groups[len(a.groups)-1]
}

// count counts an acknowledgement that waits now. a.mu is held.
func (a *acks) count(g *group) {
	g.waiting++
	a.waiting++
	a.added++
}

func (a *acks) wake() {
	select {
	case a.kick <- struct{}{}:
	default:
	}
}

// run sends a group when one is due.
func (a *acks) run() {
	defer close(a.done)
	for {
		select {
		case <-a.kick:
		case <-a.ctx.Done():
			return
		}
		a.mu.Lock()
		few := a.waiting > 0 && a.waiting < a.most && !a.hurry
		a.mu.Unlock()
		if few { // wait for company, or for somebody in a hurry
			select {
			case <-time.After(a.delay):
			case <-a.kick:
			case <-a.ctx.Done():
				return
			}
		}
		a.send()
	}
}

// send makes what waits durable, one group after the other.
func (a *acks) send() {
	for a.sendOne() {
	}
}

// sendOne makes the first group durable; false when there is none.
func (a *acks) sendOne() bool {
	a.sending.Lock()
	defer a.sending.Unlock()
	a.mu.Lock()
	if len(a.groups) == 0 || a.err != nil {
		a.hurry = false
		a.mu.Unlock()
		return false
	}
	g, session := a.groups[0], a.session
	a.groups = a.groups[1:]
	a.waiting -= g.waiting
	a.mu.Unlock()
	req := &apiv1.AcknowledgeRequest{Id: a.id, Session: session, Epoch: g.epoch, Numbers: ranges(g.runs)}
	resp, err := call(a.ctx, a.client, callTime, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.AcknowledgeResponse, error) {
		return m.Acknowledge(ctx, req)
	})
	if err == nil {
		a.landed(g.epoch, g.runs, resp.Fence)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.durable += uint64(g.waiting)
	} else if a.err == nil {
		a.err = err
	}
	a.change()
	return true
}

// change tells who waits in flush. a.mu is held.
func (a *acks) change() {
	close(a.changed)
	a.changed = make(chan struct{})
}

func ranges(runs []dataset.Range) []*apiv1.NumberRange {
	out := make([]*apiv1.NumberRange, len(runs))
	for i, r := range runs {
		out[i] = &apiv1.NumberRange{From: r.From, To: r.To}
	}
	return out
}

// flush waits until everything that was added before is durable.
func (a *acks) flush(ctx context.Context) error {
	a.mu.Lock()
	want := a.added
	a.mu.Unlock()
	for {
		a.mu.Lock()
		have, err, changed := a.durable, a.err, a.changed
		a.hurry = have < want
		a.mu.Unlock()
		switch {
		case have >= want:
			return nil
		case err != nil:
			return err
		}
		a.wake()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-a.done:
			return errAcksClosed
		}
	}
}

// failed returns the error that ended the sending, or nil.
func (a *acks) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// attach goes on under another session of the same rank, which get makes: nothing is sent meanwhile. What waits of epochs before the session's is
// dropped: a rank gets to another when the ledger knows all of the one before to be delivered.
func (a *acks) attach(get func() (session []byte, epoch uint64, err error)) error {
	a.sending.Lock()
	defer a.sending.Unlock()
	session, epoch, err := get()
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.session = session
	var keep []group
	for _, g := range a.groups {
		if g.epoch < epoch {
			a.waiting -= g.waiting
			a.durable += uint64(g.waiting)
		} else {
			keep = append(keep, g)
		}
	}
	a.groups = keep
	a.change()
	return nil
}

// close ends the goroutine; what still waits is dropped.
func (a *acks) close() {
	a.cancel(errAcksClosed)
	<-a.done
}
