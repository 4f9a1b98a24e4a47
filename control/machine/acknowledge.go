package machine

import (
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/presence"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/sdk/dataset"
)

// Acknowledge takes a rank's acknowledgements of numbers. The owner makes the ledger's records durable before it
// answers. over reports whether the job is done. The numbers of such a call were acknowledged before.
func (m *Machine) Acknowledge(
	j *Job, s ledger.Session, epoch uint64, numbers []dataset.Range, c presence.Conn, now time.Time,
) (over bool, err error) {
	if err := m.checkSession(s); err != nil {
		return false, err
	}
	switch phase := j.Phase(); {
	case phase == record.Done:
		return true, nil
	case phase.Ended():
		return false, &EndedError{j.ID, j.Words()}
	}
	if err := m.Ledger.Acknowledge(j.ID, s, epoch, numbers, now); err != nil {
		return false, err
	}
	j.Called(s.Rank, c, now)
	return false, nil
}

// Checkpoint returns the token of the acknowledged mini-batches of a session's rank, or of the whole job if session is
// nil. The owner makes the ledger's records durable before it answers.
func (m *Machine) Checkpoint(j *Job, session *ledger.Session) (token dataset.Token, err error) {
	if session != nil {
		if err := m.checkSession(*session); err != nil {
			return token, err
		}
	}
	if st := j.State(); st.Phase == record.Abandoned && len(st.Token) > 0 && session == nil {
		return token, token.UnmarshalBinary(st.Token)
	}
	if !j.Phase().Begun() {
		return token, &NotBegunError{j.ID, j.Words()}
	}
	if session == nil {
		return m.Ledger.Token(j.ID)
	}
	if r := j.Rank(session.Rank); r != nil && r.FencedOff(*session) {
		return token, ledger.ErrSession
	}
	return m.Ledger.RankToken(j.ID, session.Rank)
}

// Release is a launcher's message that gives leases back.
type Release struct {
	Session    ledger.Session
	Leases     []uint64
	Reason     ledger.Reason
	Why        string
	Through    bool // The trainer of the rank will not return to an earlier checkpoint.
	Leaves     bool // The launcher ends.
	Connection presence.Conn
}

// Release takes leases back. A job that has ended takes none. If the rank is through, the owner makes the job's state
// durable before it answers, so that a later leader does not wait for the rank.
func (m *Machine) Release(j *Job, r Release, now time.Time) error {
	if err := m.checkSession(r.Session); err != nil {
		return err
	}
	if j.Phase().Ended() {
		return nil
	}
	if err := m.Ledger.Release(j.ID, r.Session, r.Leases, r.Reason, r.Why, now); err != nil {
		return err
	}
	rank := r.Session.Rank
	j.Called(rank, r.Connection, now)
	if r.Through {
		j.Through(rank)
	}
	if r.Leaves {
		j.Left(rank, now)
	}
	return nil
}
