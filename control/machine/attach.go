package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/presence"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/sdk/dataset"
)

// AttachRequest is the request of a launcher that becomes a rank's consumer.
type AttachRequest struct {
	Rank         uint32
	Run          lifecycle.Run
	Token        *dataset.Token // The launcher resumes from this token. A nil token means that the launcher has none.
	Resumes      bool           // The launcher continues behind all acknowledged mini-batches.
	AnnouncesEnd bool           // The launcher will report that its trainer has finished with the rank.
	Connection   presence.Conn
}

// AttachAnswer holds a rank's new session.
type AttachAnswer struct {
	ledger.Attached
	SameRun bool // The former session of the rank belonged to the same run.
}

// Attach gives a caller a rank's session, and fences off the earlier one. The owner makes the job's state and the
// ledger's records durable before it answers: either the earlier session is fenced off permanently, or the caller is
// not attached. A caller that gets a [*NotBegunError] counts as a launcher that asks to attach.
func (m *Machine) Attach(j *Job, r AttachRequest, now time.Time) (a AttachAnswer, err error) {
	if err := m.awaits(j, now); err != nil {
		return a, err
	}
	if r.Token == nil && !r.Resumes {
		if err := m.checkRun(j, r, now); err != nil {
			return a, err
		}
	}
	if a.Attached, err = m.attachInLedger(j, r, now); err != nil {
		return a, err
	}
	a.SameRun = j.AttachedLast(r.Rank, r.Run)
	j.Attached(lifecycle.Attachment{
		Session: a.Session, Run: r.Run, AnnouncesEnd: r.AnnouncesEnd, Connection: r.Connection,
	}, now)
	m.settle(now)
	if st, err := m.Ledger.Status(j.ID, now); err == nil {
		j.WentBack(st.Epoch, st.Delivered, st.MiniBatches)
	}
	return a, nil
}

// awaits records that a launcher asks to attach. It returns an error if no launcher can attach to the job now.
func (m *Machine) awaits(j *Job, now time.Time) error {
	if !j.Phase().Ended() {
		j.Asked(now)
		m.settle(now)
	}
	switch phase := j.Phase(); {
	case phase.Begun() && !j.Suspended():
		return nil
	case phase == record.Done:
		return ErrDone
	case phase.Ended():
		return &EndedError{j.ID, j.Words()}
	}
	return &NotBegunError{j.ID, j.Words()}
}

// checkRun refuses a caller that would unknowingly continue where another run stopped.
func (m *Machine) checkRun(j *Job, r AttachRequest, now time.Time) error {
	rank, consumed, err := j.ForeignRun(r.Rank, r.Run, func(n uint32) (epoch, delivered uint64, err error) {
		return m.Ledger.Progress(j.ID, n)
	})
	if err != nil || !consumed {
		return err
	}
	if j.Ending(now) {
		return ErrDone
	}
	st, err := m.Ledger.Rank(j.ID, rank, now)
	if err != nil {
		return err
	}
	return &ConsumedError{st}
}

// attachInLedger gives the caller the rank's session. It begins the epoch that the token names, if the epoch was not
// begun.
func (m *Machine) attachInLedger(j *Job, r AttachRequest, now time.Time) (ledger.Attached, error) {
	if t := r.Token; t != nil {
		g := j.editionOf(t.Epoch)
		if g == nil {
			return ledger.Attached{}, fmt.Errorf("attach to %s: %w: the job has no epoch %d (any more)", j.ID,
				dataset.ErrToken, t.Epoch)
		}
		if t.Job != g.Digest {
			return ledger.Attached{}, fmt.Errorf("attach to %s: %w: it is of %v, this epoch is of %v", j.ID,
				dataset.ErrOtherJob, t.Job, g.Digest)
		}
	}
	at, err := m.Ledger.Attach(j.ID, r.Rank, r.Token, now)
	if errors.Is(err, ledger.ErrUnknown) && j.Rank(r.Rank) != nil {
		m.settle(now) // begins the epoch that is needed
		at, err = m.Ledger.Attach(j.ID, r.Rank, r.Token, now)
	}
	return at, err
}
