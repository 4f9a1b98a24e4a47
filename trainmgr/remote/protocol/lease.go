package protocol

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Grant is a lease that the leader grants: fragments of one split that a drive of a node makes.
type Grant struct {
	Lease       uint64 // the leader's number of the lease
	Epoch       uint64
	Split       int    // position in the plan
	From, To    uint64 // the fragments' numbers
	Node, Drive string
	URLs        []string // where the node is reached
	Own         bool     // The worker serves this rank alone.
	WithoutData bool     // The leader decides whether the worker's word that data are bad ends the job.
	Ticket      []byte
}

// LeaseRequest is the content of a lease call without the report of the rank.
type LeaseRequest struct {
	Session []byte
	Epoch   uint64
	Want    int           // leases to grant now; 0: none
	Wait    time.Duration // the longest that the leader waits until it can grant one
	Held    []uint64      // leases that the rank holds
	Fetched []uint64      // those of them of which every fragment has come
	Adopt   []Grant       // a description of each, for a leader that asked for it
}

// LeaseAnswer is the leader's answer to a lease call.
type LeaseAnswer struct {
	Fence          uint64
	UnknownSession bool
	JobDone        bool
	EpochDone      bool
	Adopt          bool // The leader is new and asks for a description of each lease that the rank holds.
	Waiting        string
	Grants         []Grant
	Revoked        []uint64
	Tickets        []RenewTicket
}

// Progress is how far the delivery is, when a request is made or an answer has come.
type Progress struct {
	Left    uint64 // mini-batches that have still to come
	Queued  int    // mini-batches in the input queue
	Ordered bool   // the trainer takes mini-batches in the plan's order
	Due     uint64 // if Ordered: the first fragment that has still to come, of the mini-batch that is due, or of all
	DueLate bool   // the mini-batch that is due has still to come
}

// LeaseRequest returns the content of an attempt of a lease call.
func (m *Machine) LeaseRequest(purpose Purpose, p Progress, now time.Time) LeaseRequest {
	if purpose == AskEpoch {
		return LeaseRequest{Session: m.session, Epoch: m.epoch.Number + 1, Want: 1, Wait: leaseWait}
	}
	req := LeaseRequest{Session: m.session, Epoch: m.epoch.Number}
	d := m.delivery
	asks := purpose == AskLeases && p.Left > 0
	if room := m.options.Pieces - len(d.running) - len(d.ready); asks && (room > 0 || p.Ordered) {
		req.Want, req.Wait = max(room, 1), leaseWait
	}
	if purpose == AskLeases {
		d.ask.wanted = req.Want > 0
	}
	for _, id := range sortedKeys(d.held) {
		l := d.held[id]
		req.Held = append(req.Held, id)
		if l.fetched {
			req.Fetched = append(req.Fetched, id)
		}
		if d.adopt {
			req.Adopt = append(req.Adopt, l.Grant)
		}
	}
	if asks && p.Ordered {
		m.releaseIfStuck(p, now)
		m.advance(now)
	}
	return req
}

// releaseIfStuck gives the last lease back if the rank has held no lease for the fragment that is due for stuckTime.
// The drive that could make that fragment may be busy with leases whose fragments wait for room behind it.
func (m *Machine) releaseIfStuck(p Progress, now time.Time) {
	d := m.delivery
	var last *lease
	for _, id := range sortedKeys(d.held) {
		l := d.held[id]
		if l.fetched {
			continue
		}
		if l.From <= p.Due && p.Due < l.To {
			d.stuckSince = time.Time{}
			return
		}
		if last == nil || l.From > last.From {
			last = l
		}
	}
	switch {
	case last == nil || !p.DueLate:
		d.stuckSince = time.Time{}
	case d.stuckSince.IsZero():
		d.stuckSince = now
	case now.Sub(d.stuckSince) > stuckTime:
		d.stuckSince = time.Time{}
		m.emit(CancelPiece{Lease: last.Lease, Why: Stuck})
		m.release(last.Lease, reasonStop)
	}
}

// LeaseAnswered takes the leader's answer to a lease call.
func (m *Machine) LeaseAnswered(purpose Purpose, a LeaseAnswer, p Progress, now time.Time) {
	m.noteFence(a.Fence, now)
	if 0 < a.Fence && a.Fence < m.fence { // A former leader does not know what its successor did.
		a = LeaseAnswer{Fence: a.Fence, Adopt: m.delivery != nil && m.delivery.adopt, Waiting: a.Waiting}
	}
	switch {
	case a.UnknownSession:
		m.LeaseFailed(purpose, fmt.Errorf("%w: attach again, with the trainer's token, to take it back", ErrFenced), now)
		return
	case purpose == AskEpoch:
		m.epochAnswered(a, now)
	case m.delivery != nil && m.delivery.ending == nil:
		m.noteRest(purpose, len(a.Grants) > 0, now)
		if err := m.takeAnswer(a, p, now); err != nil {
			m.failDelivery(err)
		}
	}
	m.advance(now)
}

// LeaseFailed says that a lease call failed for good.
func (m *Machine) LeaseFailed(purpose Purpose, err error, now time.Time) {
	if purpose == AskEpoch {
		m.failTurnover(err)
	} else {
		m.failDelivery(err)
	}
	m.advance(now)
}

// noteRest begins the pause after a call.
func (m *Machine) noteRest(purpose Purpose, granted bool, now time.Time) {
	d := m.delivery
	switch r := &d.ask; {
	case purpose == ReportLeases:
		d.report.rest(now, leaseWait)
	case !r.wanted: // the rank holds as many leases as it may
		r.rest(now, leaseWait)
	case !granted && now.Sub(r.begun) < leaseWait/2:
		r.rest(now, leaseRest) // a leader that was elected just now answers without waiting
	default:
		r.rest(now, 0)
	}
}

// takeAnswer takes the grants, revocations and tickets of an answer.
func (m *Machine) takeAnswer(a LeaseAnswer, p Progress, now time.Time) error {
	m.noteWaiting(a.Waiting, p.Left > 0 && p.Queued == 0, now)
	if a.JobDone && p.Left > 0 {
		return fmt.Errorf("%w: %d mini-batches of epoch %d were not delivered", ErrEnded, p.Left, m.epoch.Number)
	}
	for _, g := range a.Grants {
		if err := m.checkGrant(g); err != nil {
			return fmt.Errorf("lease %d: %w", g.Lease, err)
		}
	}
	d := m.delivery
	d.adopt = a.Adopt
	for _, id := range a.Revoked {
		if l := d.held[id]; l != nil {
			d.drop(l)
			m.emit(CancelPiece{Lease: id, Why: Revoked})
		}
	}
	for _, t := range a.Tickets {
		if d.held[t.Lease] != nil {
			m.emit(t)
		}
	}
	for _, g := range a.Grants {
		m.hold(g)
	}
	if d.adopt {
		d.endRests()
	}
	return nil
}

// checkGrant returns an error if a grant is not of the epoch's plan.
func (m *Machine) checkGrant(g Grant) error {
	split, err := m.epoch.Plan.Split(g.Split)
	if err != nil {
		return err
	}
	end := split.End()
	if g.Epoch != m.epoch.Number || g.From >= g.To || g.From < split.FirstFragment || g.To > end {
		return fmt.Errorf("fragments [%d, %d) of epoch %d are not of split %d, [%d, %d) of epoch %d",
			g.From, g.To, g.Epoch, g.Split, split.FirstFragment, end, m.epoch.Number)
	}
	return nil
}

// hold takes a granted lease. The leader repeats a grant until it has heard that the grant has come, so hold ignores a
// lease that the rank holds already or held before.
func (m *Machine) hold(g Grant) {
	d := m.delivery
	if d.held[g.Lease] != nil || d.ended.contains(g.Lease) {
		return
	}
	l := &lease{Grant: g}
	d.held[g.Lease], d.ready = l, append(d.ready, l)
	m.emit(Granted{g})
	m.emit(Wake{})
}

// Outcome says how a piece ended.
type Outcome uint8

// The outcomes of a piece.
const (
	Complete    Outcome = iota // every fragment of the lease has come
	Unneeded                   // cancelled because NothingMissing
	Interrupted                // cancelled for another reason, or the delivery has ended
	NodeFailed
	DataRefused // the node does not hold the partition: the partition has changed or was moved
	DataFaulty  // the data or the program is at fault
)

// Verdict says what follows from the end of a piece.
type Verdict uint8

// The verdicts on a piece that has ended.
const (
	Settled  Verdict = iota // nothing more
	GoesBack                // the lease goes back: another piece brings what this piece did not bring
	EndsJob                 // the data are at fault
)

// PieceEnded says how a piece that StartPiece started has ended, and why. A node that fails does not end the job.
func (m *Machine) PieceEnded(id uint64, outcome Outcome, why string, now time.Time) (v Verdict) {
	d := m.delivery
	l := d.running[id]
	delete(d.running, id)
	d.endRests()
	if outcome == DataRefused {
		if since, ok := d.refused[l.Split]; !ok {
			d.refused[l.Split] = now
		} else if now.Sub(since) > m.options.Refused {
			outcome, why = DataFaulty, ErrData.Error()+": "+why
		}
	}
	switch outcome {
	case Complete:
		l.fetched = true
		delete(d.refused, l.Split)
		m.node(l.Node).noteResult(true, now)
	case Unneeded:
		l.fetched = true
	case Interrupted:
	case DataFaulty:
		v = EndsJob
		if l.WithoutData {
			v = GoesBack
		}
		m.release(id, reasonData+shortened(why))
	default:
		v = GoesBack
		m.release(id, reasonNode+shortened(why))
	}
	if v == GoesBack {
		m.failed++
		m.node(l.Node).noteResult(false, now)
	}
	m.advance(now)
	return v
}

// maxReason is how many bytes of an error fit the reason that the control plane takes.
const maxReason = 2000

// shortened cuts an error's text to the length that the control plane accepts for a reason. A message's text must be
// UTF-8.
func shortened(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxReason)], "") }

// endedLeases remembers the leases that ended last. The leader may grant a lease again until it has heard that the
// lease has ended.
type endedLeases struct {
	ids    map[uint64]struct{}
	ring   [1 << 10]uint64 // far more leases than end before the leader hears of it
	oldest int             // index into ring of the lease to forget next
}

// contains reports whether a lease is among those that ended last.
func (e *endedLeases) contains(lease uint64) bool { _, ok := e.ids[lease]; return ok }

func (e *endedLeases) add(lease uint64) {
	if e.ids == nil {
		e.ids = make(map[uint64]struct{}, len(e.ring))
	}
	delete(e.ids, e.ring[e.oldest])
	e.ids[lease], e.ring[e.oldest] = struct{}{}, lease
	e.oldest = (e.oldest + 1) % len(e.ring)
}

// sortedKeys returns the leases of a map in ascending order, so that effects have one order.
func sortedKeys(leases map[uint64]*lease) []uint64 { return slices.Sorted(maps.Keys(leases)) }
