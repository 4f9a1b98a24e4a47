package protocol

import (
	"errors"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
)

var (
	// ErrFenced says that another consumer has attached as the same rank, so that this consumer gets nothing more.
	ErrFenced = errors.New("another consumer has attached as this rank")
	// ErrEnded says that the job was cancelled, has failed, or was abandoned.
	ErrEnded = errors.New("the job has ended")
	// ErrData says that the data or the program is at fault: every node would fail in the same way.
	ErrData = errors.New("the data is at fault")

	errClosed = errors.New("the job is closed")
	errLate   = errors.New("the control plane did not answer in time")
)

// Options are the bounds of a rank. Each is above 0.
type Options struct {
	Pieces   int           // Pieces is the most leases of which mini-batches are still to be fetched.
	Acks     int           // A group of this size is sent without delay.
	AckDelay time.Duration // AckDelay is the longest that an acknowledgement waits for others.
	Deadline time.Duration // Deadline is for one mini-batch of a busy node.
	// Refused is how long nodes may refuse a split, because they do not hold its partition or the partition has changed,
	// before the data counts as at fault.
	Refused time.Duration
}

// Epoch is an epoch as one rank sees it.
type Epoch struct {
	Number  uint64
	Plan    *dataset.Plan
	Owned   []dataset.Range   // Owned are the numbers of the rank's mini-batches.
	Durable *dataset.Progress // Durable are the mini-batches that the ledger knows. The Machine changes it.
}

// Attachment is what a rank got when it attached.
type Attachment struct {
	Session []byte
	Epoch   Epoch
}

// Machine is the launcher's side of the protocol for one rank.
type Machine struct {
	options   Options
	session   []byte
	epoch     Epoch
	fence     uint64 // The leader that answered last has it; 0: none has answered since the rank attached.
	acks      acknowledgements
	turnover  turnover
	delivery  *delivery // nil: no epoch is being delivered
	departure departure
	nodes     map[string]*node
	starving  starvation
	through   bool // every mini-batch of every epoch is acknowledged
	failed    int  // leases that were given back because their node failed
	effects   []Effect
}

// New makes the machine of a rank that has attached.
func New(o Options, a Attachment) *Machine {
	return &Machine{
		options: o, session: a.Session, epoch: a.Epoch, acks: acknowledgements{fullGroup: o.Acks, delay: o.AckDelay},
		turnover: turnover{step: settled}, nodes: map[string]*node{},
	}
}

// Ready returns the effects of the events since the last call, in their order.
func (m *Machine) Ready() []Effect {
	effects := m.effects
	m.effects = nil
	return effects
}

func (m *Machine) emit(e Effect) { m.effects = append(m.effects, e) }

// Tick lets time pass.
func (m *Machine) Tick(now time.Time) { m.advance(now) }

// advance begins every call that is due. Each event ends with it.
func (m *Machine) advance(now time.Time) {
	if m.departure.left {
		return
	}
	m.advanceTurnover(now)
	m.sendAcknowledgements(now)
	m.advanceDelivery(now)
	m.advanceDeparture(now)
}

// Deadline returns when Tick is due; the zero time if no time is waited for.
func (m *Machine) Deadline() time.Time {
	var first time.Time
	earlier := func(t time.Time) {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if m.departure.left {
		return first
	}
	if !m.turnover.attaching() {
		earlier(m.acks.deadline())
	}
	earlier(m.turnover.rest)
	if m.delivery != nil {
		earlier(m.delivery.nextTime())
	}
	earlier(m.departure.deadline)
	return first
}

// Session returns the session that names this consumer in calls.
func (m *Machine) Session() []byte { return m.session }

// FailedLeases returns how many leases were given back because their node failed.
func (m *Machine) FailedLeases() int { return m.failed }

// RowsLeft counts the rows that the current epoch still owes.
func (m *Machine) RowsLeft() (rows int64) {
	for _, numbers := range m.epoch.Owned {
		for n := numbers.From; n < numbers.To; n++ {
			if mb, err := m.epoch.Plan.MiniBatch(n); err == nil && !m.epoch.Durable.Acked(n) {
				rows += int64(mb.Rows)
			}
		}
	}
	return rows
}

// isDurable reports whether the ledger knows that every mini-batch of which a lease has a fragment was acknowledged.
func (m *Machine) isDurable(l *lease) bool {
	last, err := m.epoch.Plan.Fragment(l.To - 1)
	first, _ := m.epoch.Plan.Fragment(l.From)
	pending, ok := m.epoch.Durable.Pending(first.MiniBatch)
	return err == nil && (!ok || pending > last.MiniBatch)
}

// noteFence notes which leader answers. If a new one does, the rank acknowledges everything of the epoch again: the
// control plane may have been restored from a backup that is older than the acknowledgements. The leader that answers
// first may not be the one that attached the rank.
func (m *Machine) noteFence(fence uint64, now time.Time) {
	first, changed := m.fence == 0, fence > m.fence
	m.fence = max(m.fence, fence)
	if changed && !(first && m.epoch.Durable.Count() == 0) {
		m.acknowledgeAgain(now)
	}
}

// acknowledgeAgain sends every acknowledgement of the epoch once more.
func (m *Machine) acknowledgeAgain(now time.Time) {
	numbers := dataset.IntersectRanges(m.epoch.Durable.Token().Acknowledged(), m.epoch.Owned)
	m.emit(AcknowledgeAgain{Epoch: m.epoch.Number, Runs: len(numbers)})
	if len(numbers) > 0 {
		m.acks.addRanges(m.epoch.Number, numbers, now)
	}
}

// waitReportInterval is how long a trainer waits before TrainerWaits reports it, and how long until it is reported
// again.
const waitReportInterval = 10 * time.Second

// starvation is the last reason that the control plane gave for granting no lease, and how long the trainer has waited.
type starvation struct {
	waitingFor string    // empty: it granted one, or the rank needs none
	since      time.Time // when the trainer began to wait; zero: it does not wait
	reported   time.Time // when the wait was reported last, or when it began
}

// WaitingFor returns the last reason that the control plane gave for granting no lease. It is empty if it granted one,
// or if the rank needs none.
func (m *Machine) WaitingFor() string { return m.starving.waitingFor }

// noteWaiting keeps why the control plane granted no lease, and reports it if the trainer has starved for long.
func (m *Machine) noteWaiting(waitingFor string, starves bool, now time.Time) {
	s := &m.starving
	s.waitingFor = waitingFor
	if waitingFor == "" || !starves {
		s.since = time.Time{}
		return
	}
	if s.since.IsZero() {
		s.since, s.reported = now, now
	}
	if now.Sub(s.reported) >= waitReportInterval {
		s.reported = now
		m.emit(TrainerWaits{For: waitingFor, Long: now.Sub(s.since)})
	}
}
