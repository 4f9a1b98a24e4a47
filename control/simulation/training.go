package simulation

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/remote/protocol"
)

// depth is the capacity of a launcher's queue, in mini-batches.
const depth = 12

// delivery is an epoch while it is delivered: pieces that fetch, and the queue between them and the trainer. It stands
// for the delivery of package trainmgr.
type delivery struct {
	of        *launcher
	came      *dataset.Progress // The fragments that have come, or need not come.
	taken     *dataset.Progress // The mini-batches that the trainer has taken, or need not come.
	parts     map[uint64]*parts // The key is the mini-batch.
	queue     []minibatch       // in the order in which they came
	onTheWay  int               // The queue keeps room for fragments that are on their way: this is their number.
	pieces    map[uint64]*piece // The key is the lease.
	running   []*piece
	lending   [2]*call // The lease calls under way, by purpose.
	returning *call    // The call under way that gives leases back.
	ending    bool
}

// piece is a lease whose fragments are fetched.
type piece struct {
	protocol.Grant
	next      uint64 // The next number to fetch.
	started   bool
	over      bool
	cancelled bool
	reserved  bool // The queue keeps room for the next fragment.
	waits     bool // It waits for room in the queue.
}

// parts is the fragments of a mini-batch that wait for the others.
type parts struct {
	contents []string // in the order of the fragments; empty: it has not come
	came     int
}

// minibatch is a fetched mini-batch.
type minibatch struct {
	number  uint64
	content string
}

// progress returns the Progress of an epoch of which mini-batches are acknowledged.
func (e *epoch) progress(numbers []dataset.Range) *dataset.Progress {
	return e.progressOf(numbers, e.plan.MiniBatches())
}

// fragments returns the Progress of the fragments of an epoch of which mini-batches are acknowledged.
func (e *epoch) fragments(miniBatches []dataset.Range) *dataset.Progress {
	var numbers []dataset.Range
	for _, r := range miniBatches {
		numbers = append(numbers, e.plan.FragmentsOf(r))
	}
	return e.progressOf(numbers, e.plan.Fragments())
}

// progressOf returns the Progress of total numbers of an epoch.
func (e *epoch) progressOf(numbers []dataset.Range, total uint64) *dataset.Progress {
	t := dataset.Token{Job: e.edition.digest, Epoch: e.number, Ranges: numbers}
	if len(numbers) > 0 && numbers[0].From == 0 {
		t.Mark, t.Ranges = numbers[0].To, numbers[1:]
	}
	p, err := dataset.Resume(t, t.Job, total)
	if err != nil {
		panic(err) // This package has a fault.
	}
	return p
}

// deliver begins the delivery of the epoch.
func (l *launcher) deliver() {
	e := l.epoch
	settled := dataset.UnionRanges(l.acknowledged.Token().Acknowledged(),
		dataset.ComplementRanges(l.owned, e.plan.MiniBatches()))
	l.delivery = &delivery{
		of: l, came: e.fragments(settled), taken: e.progress(settled), parts: map[uint64]*parts{},
		pieces: map[uint64]*piece{},
	}
	var err error
	l.tell(func(m *protocol.Machine, now time.Time) { err = m.BeginDelivery(now) })
	if err != nil {
		l.delivery = nil
		l.quit(err)
		l.leave()
		return
	}
	l.goOn()
}

// progress returns how far the delivery is. The zero Progress is that of no delivery.
func (l *launcher) progress() (p protocol.Progress) {
	d := l.delivery
	if d == nil {
		return p
	}
	p = protocol.Progress{Left: d.left(), Queued: len(d.queue), Ordered: l.of.job.deterministic}
	due := l.epoch.plan.FragmentsOf(dataset.Range{From: d.due(), To: d.due() + 1})
	p.Due, p.DueLate = d.came.Pending(due.From)
	p.DueLate = p.Ordered && p.DueLate && p.Due < due.To
	return p
}

// left returns how many mini-batches have still to come.
func (d *delivery) left() uint64 { return d.taken.Total() - d.taken.Count() - uint64(len(d.queue)) }

// due returns the number that the trainer waits for next, if it takes mini-batches in the plan's order.
func (d *delivery) due() uint64 {
	due, _ := d.taken.Pending(0)
	return due
}

// blocked reports whether a piece waits for room in the queue.
func (d *delivery) blocked() bool {
	return slices.ContainsFunc(d.running, func(p *piece) bool { return p.waits })
}

// startPieces starts the pieces of granted leases. It reports whether it has started one.
func (l *launcher) startPieces() (started bool) {
	for d := l.delivery; d != nil && !d.ending && !d.came.Done() && !l.dead; {
		id, ok, err := l.machine.StartPiece()
		if err != nil {
			l.quit(err)
			return started
		}
		if !ok {
			return started
		}
		started = true
		p := d.pieces[id]
		p.started = true
		d.running = append(d.running, p)
		l.later(l.machine.NodePause(p.Node, l.world().now), "a piece starts", func() {
			if !p.over && !p.cancelled {
				l.tell(func(m *protocol.Machine, _ time.Time) { m.Reached(p.Node, p.URLs) })
				d.fetch(p)
			}
		})
	}
	return started
}

// cancelPiece ends the piece of a lease, or forgets it.
func (d *delivery) cancelPiece(e protocol.CancelPiece) {
	p, l := d.pieces[e.Lease], d.of
	if p == nil {
		return
	}
	outcome := protocol.Interrupted
	if e.Why == protocol.NothingMissing {
		outcome = protocol.Unneeded
	} else {
		delete(d.pieces, e.Lease)
	}
	if p.started && !p.over && !p.cancelled {
		p.cancelled = true
		l.later(l.world().between(0, 2*time.Millisecond), "a piece ends", func() { d.endPiece(p, outcome, "") })
	}
}

// endPiece reports the end of a piece.
func (d *delivery) endPiece(p *piece, outcome protocol.Outcome, why string) {
	if p.over {
		return
	}
	l := d.of
	p.over, p.waits = true, false
	d.release(p)
	d.running = slices.DeleteFunc(d.running, func(o *piece) bool { return o == p })
	l.tell(func(m *protocol.Machine, now time.Time) {
		if m.PieceEnded(p.Lease, outcome, why, now) == protocol.EndsJob {
			l.quit(errors.New("the data are at fault: " + why))
		}
	})
	l.goOn()
}

// reserve keeps room in the queue for the next fragment of a piece, if there is room. A fragment of the mini-batch that
// is due, of one before it, or of one that has begun to come needs none. If fragments fill the queue of a trainer that
// takes mini-batches in any order, others may come until a mini-batch is whole.
func (d *delivery) reserve(p *piece) bool {
	f, _ := d.of.epoch.plan.Fragment(p.next) // The number is of the plan.
	ordered, parts := d.of.of.job.deterministic, len(d.parts)
	p.reserved = len(d.queue)+parts+d.onTheWay < depth || d.parts[f.MiniBatch] != nil ||
		ordered && f.MiniBatch <= d.due() || !ordered && parts > 0 && len(d.queue) == 0
	p.waits = !p.reserved
	if p.reserved {
		d.onTheWay++
	}
	return p.reserved
}

// release gives up the room that the queue keeps for a piece, and wakes the pieces that wait for room.
func (d *delivery) release(p *piece) {
	if p.reserved {
		p.reserved = false
		d.onTheWay--
	}
	d.wake()
}

// wake continues the pieces that wait for room.
func (d *delivery) wake() {
	for _, p := range slices.Clone(d.running) {
		if p.waits && !p.cancelled && !d.ending {
			d.fetch(p)
		}
	}
}

// fetch fetches the next fragment of a piece, or ends the piece.
func (d *delivery) fetch(p *piece) {
	l := d.of
	for p.next < p.To && d.came.Acked(p.next) {
		p.next++ // Another piece has brought this fragment.
	}
	if p.next == p.To {
		p.waits = false
		d.endPiece(p, protocol.Complete, "")
		return
	}
	if d.reserve(p) {
		d.ask(p, &protocol.Fetch{Node: p.Node, Begun: l.world().now})
	}
}

// ask asks the node for the next fragment of a piece.
func (d *delivery) ask(p *piece, f *protocol.Fetch) {
	l := d.of
	w, e, number := l.world(), l.epoch, p.next
	n := w.nodeOf(l.machine.Address(p.Node))
	answered := false
	var late *event
	answer := func(content string, err error) {
		if answered || l.dead || p.over || p.cancelled {
			return
		}
		answered = true
		late.never()
		if err == nil {
			d.put(p, content)
			return
		}
		fault := protocol.OtherFault
		if errors.Is(err, errBusy) {
			fault = protocol.BusyFault
		}
		again, pause, _ := l.machine.FetchFailed(f, n.name, fault, 0, w.now)
		if !again {
			d.endPiece(p, protocol.NodeFailed, err.Error())
			return
		}
		l.later(pause, "asks a node again", func() {
			if !p.over && !p.cancelled {
				d.ask(p, f)
			}
		})
	}
	dead := func() bool { return !n.alive }
	w.send(l.name()+" fetches", dead, func() {
		content, err := n.serve(e, p.Lease, number)
		w.send(n.name+" answers "+l.name(), dead, func() { answer(content, err) })
	})
	late = l.later(3*time.Second, "the fetch is given up", func() { answer("", errFetch) })
}

// put puts a fragment into the queue, unless another piece has brought it.
func (d *delivery) put(p *piece, content string) {
	l := d.of
	if !d.came.Acked(p.next) {
		_ = d.came.Ack(p.next) // The number is of the plan.
		d.join(p, content)
		if l.dead {
			return
		}
	}
	p.next++
	d.release(p)
	if d.came.Done() {
		l.tell(func(m *protocol.Machine, _ time.Time) { m.EveryBatchCame() })
	}
	if !p.over && !p.cancelled {
		d.fetch(p)
	}
	l.goOn()
}

// join puts the next fragment of a piece into the queue if it is the last of its mini-batch that was missing. Otherwise
// it waits for the others; in that moment the node or the launcher may die.
func (d *delivery) join(p *piece, content string) {
	l, w := d.of, d.of.world()
	f, _ := l.epoch.plan.Fragment(p.next) // The number is of the plan.
	mb, _ := l.epoch.plan.MiniBatch(f.MiniBatch)
	got := d.parts[mb.Number]
	if got == nil {
		got = &parts{contents: make([]string, mb.Fragments)}
		d.parts[mb.Number] = got
	}
	got.contents[p.next-mb.FirstFragment] = content
	if got.came++; got.came == mb.Fragments {
		delete(d.parts, mb.Number)
		d.queue = append(d.queue, minibatch{mb.Number, strings.Join(got.contents, "+")})
		return
	}
	if w.faulty() && w.chance(w.faults.halves) {
		if n := w.nodeOf(p.Node); w.random.IntN(2) == 0 && n.alive {
			n.die(w.between(100*time.Millisecond, 30*time.Second))
		} else if l.current() {
			l.crash()
		}
	}
}

// next removes the mini-batch that the trainer takes next from the queue.
func (d *delivery) next() (b minibatch, ok bool) {
	at := 0
	if d.of.of.job.deterministic {
		due := d.due()
		at = slices.IndexFunc(d.queue, func(b minibatch) bool { return b.number == due })
	}
	if at < 0 || at >= len(d.queue) {
		return b, false
	}
	b = d.queue[at]
	d.queue = slices.Delete(d.queue, at, at+1)
	_ = d.taken.Ack(b.number) // The number is of the plan.
	d.wake()
	return b, true
}

// goOn begins the trainer's next step, or ends the delivery.
func (l *launcher) goOn() {
	d := l.delivery
	if l.dead || d == nil || d.ending || l.training || l.saving {
		return
	}
	if l.quits != nil {
		d.end()
		return
	}
	l.training = true // Nothing that follows from the room in the queue begins a step, too.
	if b, ok := d.next(); ok {
		l.later(l.world().between(time.Millisecond, 30*time.Millisecond), "a step", func() {
			l.training = false
			l.step(b)
			l.goOn()
		})
		return
	}
	l.training = false
	if d.came.Done() && len(d.queue) == 0 && len(d.running) == 0 {
		d.end()
	}
}

// step trains with one mini-batch, and acknowledges it.
func (l *launcher) step(b minibatch) {
	e := l.epoch
	if l.current() {
		l.of.train(e, b.number, b.content)
	}
	_ = l.acknowledged.Ack(b.number) // The number is of the plan.
	var err error
	l.tell(func(m *protocol.Machine, now time.Time) { err = m.Acknowledge(e.number, b.number, now) })
	if err != nil {
		l.quit(err)
		return
	}
	if l.steps++; l.of.job.tokens && l.steps%10 == 0 && l.quits == nil {
		l.save(func(err error) {
			if errors.Is(err, protocol.ErrFenced) {
				l.quit(err)
			}
			l.goOn()
		})
	}
}

// end ends the delivery: its pieces end, its acknowledgements become durable, and its leases go back.
func (d *delivery) end() {
	l := d.of
	d.ending = true
	for len(d.running) > 0 {
		d.endPiece(d.running[0], protocol.Interrupted, "")
	}
	l.tell(func(m *protocol.Machine, now time.Time) { m.EndDelivery(now) })
	for _, c := range d.lending {
		c.end(nil, errHungUp)
	}
	l.await(func() bool {
		ended, err := l.machine.DeliveryEnded()
		if !ended {
			return false
		}
		if err != nil {
			l.world().note("%s ends a delivery: %v", l.name(), err)
		}
		l.delivery = nil
		d.returning.end(nil, errHungUp)
		if l.quits != nil {
			l.leave()
		} else {
			l.nextEpoch()
		}
		return true
	})
}

// save saves a checkpoint: a token of the acknowledged mini-batches, which the control plane seals, and the model.
func (l *launcher) save(then func(error)) {
	l.saving = true
	l.askToken(protocol.BeginCheckpoint(l.acknowledged.Token()), func(err error) {
		l.saving = false
		then(err)
	})
}

// askToken makes the acknowledgements durable and has a token sealed.
func (l *launcher) askToken(c *protocol.Checkpoint, then func(error)) {
	var ticket uint64
	l.tell(func(m *protocol.Machine, now time.Time) { ticket = m.Flush(now) })
	l.await(func() bool {
		durable, err := l.machine.Flushed(ticket)
		if err != nil {
			then(err)
		} else if durable {
			l.seal(c, then)
		}
		return durable || err != nil
	})
}

// seal asks for a token, and again if the token lacks an acknowledgement.
func (l *launcher) seal(c *protocol.Checkpoint, then func(error)) {
	session := l.machine.AskToken(c)
	l.call("checkpoint", callTime, func() request {
		return func(t *term, _ *connection, reply func(any, error)) { t.checkpoint(l.of.job, session, reply) }
	}, func(a any, err error) {
		if err != nil {
			then(err)
			return
		}
		sealed, ok := a.(dataset.Token), false
		if l.current() {
			l.of.checkToken(l.name(), l.epoch, sealed)
		}
		l.tell(func(m *protocol.Machine, now time.Time) {
			ok, err = m.TokenSealed(c, sealed, l.acknowledged.Token(), now)
		})
		switch {
		case err != nil:
			then(err)
		case !ok:
			l.askToken(c, then)
		default:
			if l.current() {
				l.of.keep(l.name(), l.epoch, sealed)
			}
			then(nil)
		}
	})
}
