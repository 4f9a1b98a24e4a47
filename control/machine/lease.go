package machine

import (
	"errors"
	"slices"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/presence"
	"github.com/millrace/millrace/control/record"
)

// LeaseRequest is the content of a Lease call.
type LeaseRequest struct {
	Session      ledger.Session
	Epoch        uint64
	Want         int            // The number of pieces that the launcher requests. A call with 0 does not wait.
	Held         []uint64       // The launcher fetches the mini-batches of these leases.
	Fetched      []uint64       // The launcher has fetched every mini-batch of these leases.
	Adopt        []ledger.Lease // The launcher holds these leases of an earlier leader.
	Blocked      bool           // The input queue of the launcher is full.
	AnnouncesEnd bool           // The launcher will report that its trainer has finished with the rank.
	Connection   presence.Conn
}

// LeaseAnswer is the answer to a Lease call.
type LeaseAnswer struct {
	Grants         []ledger.Grant
	Revoked        []uint64
	Adopt          bool   // The launcher must list the leases that it holds of an earlier leader.
	UnknownSession bool   // The launcher must attach again.
	JobDone        bool   // The job has no mini-batch left for this rank.
	EpochDone      bool   // The epoch has no lease left for this rank.
	Waiting        string // The reason for an answer without a grant.
	Reported       bool   // The ledger has accepted the progress of the call, so the report of the call is valid, too.
	Served         bool   // The leases of the launcher continue, and their tickets are renewed.

	first []uint64 // The leases of the grants that no earlier answer contained.
}

// leaseCall is one Lease call.
type leaseCall struct {
	number  uint64 // The owner has given the call this number.
	job     *Job
	rank    *lifecycle.Rank
	request LeaseRequest
	answer  LeaseAnswer
	want    uint64 // The rank has given the call this number.
}

// Lease records a rank's progress. It returns the answer, or nil if the call waits. The effect [Answered] has the
// answer of a call that waited.
func (m *Machine) Lease(j *Job, number uint64, r LeaseRequest, now time.Time) (*LeaseAnswer, error) {
	c := &leaseCall{number: number, job: j, request: r}
	answered, err := false, m.checkSession(r.Session)
	if err == nil {
		answered, err = m.findRank(c, now)
	}
	if err == nil && !answered {
		answered, err = m.takeProgress(c, now)
	}
	if err == nil && !answered && c.wantsMore() {
		if err = m.awaitGrants(c, now); err == nil && !m.hasNews(c) {
			m.waiting[number] = c
			j.waiting[r.Session.Rank] = append(j.waiting[r.Session.Rank], c)
			return nil, nil
		}
		if err == nil {
			answered, err = m.endWait(c, now)
		}
	}
	if err == nil && !answered {
		err = m.answer(c, now)
	}
	if err != nil {
		return nil, err
	}
	return &c.answer, nil
}

// findRank finds the rank, if leases can be granted.
func (m *Machine) findRank(c *leaseCall, now time.Time) (answered bool, err error) {
	if answered, err := c.checkEnded(); answered || err != nil {
		return answered, err
	}
	j := c.job
	if j.Suspended() {
		j.Asked(now)
		m.settle(now)
	}
	if !j.Phase().Begun() || j.Suspended() {
		c.answer.Waiting = j.Words()
		return true, nil
	}
	if c.rank = j.Rank(c.request.Session.Rank); c.rank == nil {
		c.answer.UnknownSession = true
		return true, nil
	}
	return false, nil
}

// checkEnded answers the call if the job is over.
func (c *leaseCall) checkEnded() (answered bool, err error) {
	switch phase := c.job.Phase(); {
	case phase == record.Done:
		c.answer.JobDone = true
		return true, nil
	case phase.Ended():
		return false, &EndedError{c.job.ID, c.job.Words()}
	}
	return false, nil
}

// takeProgress extends the rank's leases and records what the launcher reports.
func (m *Machine) takeProgress(c *leaseCall, now time.Time) (answered bool, err error) {
	if err := m.hold(c, now); err != nil {
		if errors.Is(err, ledger.ErrSession) || errors.Is(err, ledger.ErrUnknown) {
			c.answer = LeaseAnswer{UnknownSession: true}
			return true, nil
		}
		return false, err
	}
	c.job.Called(c.request.Session.Rank, c.request.Connection, now)
	m.settle(now)
	if c.request.Epoch >= c.job.EndEpoch() && !c.job.Follow {
		c.answer.JobDone = true
		return true, nil
	}
	return false, nil
}

// hold passes to the ledger the leases that the launcher names. The launcher must show the leases of an earlier leader
// before any lease is extended or revoked.
func (m *Machine) hold(c *leaseCall, now time.Time) error {
	r := &c.request
	if c.rank.MustShow(r.Session, m.fence) && len(r.Held) > 0 && len(r.Adopt) == 0 {
		c.answer.Adopt = true
		return nil
	}
	if len(r.Adopt) > 0 && !c.rank.Adopted() {
		refused, err := m.Ledger.Adopt(c.job.ID, r.Session, r.Adopt, now)
		if err != nil {
			return err
		}
		c.answer.Revoked = append(c.answer.Revoked, refused...)
		m.emit(Adopted{c.job.ID, r.Session.Rank, len(r.Adopt) - len(refused), len(refused)})
	}
	progress := ledger.Progress{Held: r.Held, Fetched: r.Fetched, Blocked: r.Blocked}
	revoked, err := m.Ledger.Hold(c.job.ID, r.Session, progress, now)
	if err != nil {
		return err
	}
	c.rank.Held(r.Session, slices.Concat(r.Held, r.Fetched), m.leasedTo(c))
	c.job.Announces(r.Session.Rank, r.AnnouncesEnd)
	c.answer.Revoked = append(c.answer.Revoked, revoked...)
	c.answer.Reported = true
	return nil
}

func (m *Machine) leasedTo(c *leaseCall) func(lease uint64) bool {
	return func(lease uint64) bool { return m.Ledger.Leased(c.job.ID, c.request.Session.Rank, lease) }
}

// wantsMore reports whether the call waits for grants. A call that only reports does not change the want of another
// call of the rank.
func (c *leaseCall) wantsMore() bool {
	return c.request.Want > 0 && !c.answer.Adopt && c.job.editionOf(c.request.Epoch) != nil
}

// awaitGrants asks the ledger for pieces.
func (m *Machine) awaitGrants(c *leaseCall, now time.Time) error {
	var more int
	c.want, more = c.rank.Wants(c.request.Want)
	if err := m.Ledger.Want(c.job.ID, c.request.Session, c.request.Epoch, more, now); err != nil {
		return err
	}
	m.settle(now)
	return nil
}

// hasNews reports whether a call that waits has its answer.
func (m *Machine) hasNews(c *leaseCall) bool {
	return c.rank.HasNews() || c.job.Phase().Ended() || c.rank.FencedOff(c.request.Session)
}

// wake answers the calls of a rank that wait, if the rank has news.
func (m *Machine) wake(j *Job, rank uint32, now time.Time) {
	for _, c := range slices.Clone(j.waiting[rank]) {
		if m.waiting[c.number] == c && m.hasNews(c) {
			m.finish(c, now)
		}
	}
}

// finish answers a call that waits.
func (m *Machine) finish(c *leaseCall, now time.Time) {
	m.remove(c)
	answered, err := m.endWait(c, now)
	if err == nil && !answered {
		err = m.answer(c, now)
	}
	m.emit(Answered{Call: c.number, Answer: c.answer, Err: err})
}

// endWait ends the wait of a call: it withdraws the want of its rank, unless a later call of the rank waits by now.
func (m *Machine) endWait(c *leaseCall, now time.Time) (answered bool, err error) {
	if c.rank.FencedOff(c.request.Session) {
		c.answer.UnknownSession = true
		return true, nil
	}
	if answered, err := c.checkEnded(); answered || err != nil {
		return answered, err
	}
	if !c.rank.Withdraws(c.want) {
		return false, nil
	}
	return false, m.Ledger.Want(c.job.ID, c.request.Session, c.request.Epoch, 0, now)
}

// Expire answers a call whose time has elapsed. It does nothing for a call that has been answered.
func (m *Machine) Expire(call uint64, now time.Time) {
	if c := m.waiting[call]; c != nil {
		m.finish(c, now)
	}
}

// Abandon ends a call whose caller has disconnected. a is the answer of the call, or nil if the call waits. Leases that
// were granted for the call, and that no other answer contained, return to the ledger.
func (m *Machine) Abandon(j *Job, call uint64, s ledger.Session, a *LeaseAnswer, now time.Time) {
	var unanswered []uint64
	if a != nil {
		unanswered = a.first
	} else if c := m.waiting[call]; c != nil {
		m.remove(c)
		answered, err := m.endWait(c, now)
		if answered || err != nil || !c.rank.Withdraws(c.want) {
			return
		}
		unanswered = c.rank.TakeUnanswered()
	}
	// A session that was fenced off has no lease.
	_ = m.Ledger.Release(j.ID, s, unanswered, ledger.Stopped, "", now)
}

// answer fills in the rank's grants and its status.
func (m *Machine) answer(c *leaseCall, now time.Time) error {
	grants, first, revoked := c.rank.Answer(m.leasedTo(c))
	c.answer.Grants, c.answer.first, c.answer.Revoked = grants, first, append(c.answer.Revoked, revoked...)
	st, err := m.Ledger.Rank(c.job.ID, c.request.Session.Rank, now)
	if err != nil {
		return err
	}
	c.answer.Served = true
	c.answer.EpochDone = st.Epoch == c.request.Epoch && st.Out
	if len(grants) == 0 && !c.answer.EpochDone {
		c.answer.Waiting = st.Waiting
		if c.job.editionOf(c.request.Epoch) == nil {
			c.answer.Waiting = "new partitions have not appeared yet"
		}
	}
	return nil
}
