package lifecycle

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/presence"
	"github.com/millrace/millrace/control/record"
)

// maxRunName bounds the name of a training run, in bytes.
const maxRunName = 256

// Run identifies the training run that a launcher belongs to: it is the beginning of the SHA-256 of the run's name.
// The zero value means that the launcher named no run.
type Run [record.RunBytes]byte

// RunOf returns the Run of a run's name. The error wraps ledger.ErrArgument.
func RunOf(name string) (r Run, err error) {
	if len(name) > maxRunName {
		return r, fmt.Errorf("%w: the name of the run has %d bytes, at most %d", ledger.ErrArgument, len(name),
			maxRunName)
	}
	if name == "" {
		return r, nil
	}
	sum := sha256.Sum256([]byte(name))
	copy(r[:], sum[:])
	return r, nil
}

// Attachment holds what a launcher reports when it becomes a rank's consumer, and the session that it got.
type Attachment struct {
	Session      ledger.Session // Session is that of the ledger; a session before it is fenced off.
	Run          Run
	AnnouncesEnd bool          // the launcher will report when the rank is through
	Connection   presence.Conn // on which it called
}

// attendance records when the launchers of a job's ranks call, and how long none has called.
type attendance struct {
	*life
	members *rankSet
	room    *room
	asked   time.Time // when a launcher asked last to attach; zero: none has since a rank attached
}

// Attached records that a launcher became a rank's consumer. Grants and revocations for an earlier launcher are
// dropped.
func (a *attendance) Attached(by Attachment, now time.Time) {
	number := by.Session.Rank
	a.machine.launchers.Attach(presence.Rank{Job: a.ID, Number: number}, by.Connection, now)
	a.asked = time.Time{}
	a.noteAttendance()
	if a.state.Unattached {
		a.state.Unattached, a.unwritten = false, true
	}
	r := &a.members.ranks[number]
	r.offers, r.revoked, r.session, r.adopted = nil, nil, by.Session, true
	r.through = false
	a.members.noteAnnouncement(r, by.AnnouncesEnd)
	if r.run != by.Run {
		r.run, a.unwritten = by.Run, true
	}
	a.machine.emit(WakeRank{Job: a.ID, Rank: number})
}

// Called records that a rank's launcher called, on a connection.
func (a *attendance) Called(rank uint32, c presence.Conn, now time.Time) {
	a.machine.launchers.Call(presence.Rank{Job: a.ID, Number: rank}, c, now)
	a.noteAttendance()
}

// Asked records that a launcher waits until it can attach.
func (a *attendance) Asked(now time.Time) {
	a.asked = now
	a.noteAttendance()
}

// Left records that a rank's launcher ends. The rank's leases come back.
func (a *attendance) Left(rank uint32, now time.Time) {
	a.machine.launchers.Leave(presence.Rank{Job: a.ID, Number: rank}, now)
	a.machine.detachDeparted(now)
}

// Launcher returns the presence of a rank's launcher.
func (a *attendance) Launcher(rank uint32) presence.State {
	return a.machine.launchers.Of(presence.Rank{Job: a.ID, Number: rank})
}

// noteCalls records whether a rank of the job is attached, or asks to attach, and reports it.
func (a *attendance) noteCalls(now time.Time) bool {
	attended, last := a.lastCall(now)
	switch {
	case attended:
		a.noteAttendance()
	case a.state.Unattended.IsZero():
		if last.IsZero() {
			last = now // no rank has called yet, or none since this leader leads
		}
		// What is not stored of a job that has not begun counts again with the next leader.
		a.state.Unattended, a.unwritten = last.UTC(), a.unwritten || a.Phase().Begun()
	}
	return attended
}

// endIfAbandoned ends a job that no rank has called about for too long.
func (a *attendance) endIfAbandoned(now time.Time) {
	after := a.AbandonAfter()
	if after <= 0 || now.Sub(a.state.Unattended) < after {
		return
	}
	did := "called"
	if a.state.Unattached {
		did = "attached"
	}
	a.endJob(onAbandoned, fmt.Sprintf("no rank has %s since %s, for more than %v", did,
		a.state.Unattended.Format(time.RFC3339), after), now)
}

// Attended reports whether a rank of the job is attached, or asks to attach.
func (a *attendance) Attended(now time.Time) bool {
	attended, _ := a.lastCall(now)
	return attended
}

// lastCall reports whether a rank of the job is attached, or asks to attach, and when a launcher called last.
func (a *attendance) lastCall(now time.Time) (attended bool, last time.Time) {
	attended, last = now.Sub(a.asked) < a.machine.config.Presence.Silence, a.asked
	for n := range a.members.ranks {
		st := a.Launcher(uint32(n))
		attended = attended || st.Attached
		if st.Last.After(last) {
			last = st.Last
		}
	}
	return attended, last
}

// noteAttendance records that a rank of the job is attached, or asks to attach.
func (a *attendance) noteAttendance() {
	if !a.state.Unattended.IsZero() {
		a.state.Unattended, a.unwritten = time.Time{}, a.unwritten || a.Phase().Begun()
	}
	a.room.want()
}
