package lifecycle

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/trainmgr/control/ledger"
	"github.com/millrace/millrace/trainmgr/control/presence"
	"github.com/millrace/millrace/trainmgr/control/record"
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
	Session      ledger.Session // of the ledger; a session before it is fenced off
	Run          Run
	AnnouncesEnd bool          // the launcher will report when the rank is through
	Connection   presence.Conn // on which it called
}

// Attached records that a launcher became a rank's consumer. Grants and revocations for an earlier launcher are
// dropped.
func (j *Job) Attached(a Attachment, now time.Time) {
	number := a.Session.Rank
	j.machine.launchers.Attach(presence.Rank{Job: j.ID, Number: number}, a.Connection, now)
	j.noteAttendance()
	r := &j.ranks[number]
	r.offers, r.revoked, r.session, r.adopted = nil, nil, a.Session, true
	r.through = false
	j.noteAnnouncement(r, a.AnnouncesEnd)
	if r.run != a.Run {
		r.run, j.unwritten = a.Run, true
	}
	j.machine.emit(WakeRank{Job: j.ID, Rank: number})
}

// AttachedLast reports whether a run is the one that attached to a rank last. A run without a name is another one each
// time.
func (j *Job) AttachedLast(rank uint32, run Run) bool {
	r := j.Rank(rank)
	return r != nil && run != (Run{}) && r.run == run
}

// Called records that a rank's launcher called, on a connection.
func (j *Job) Called(rank uint32, c presence.Conn, now time.Time) {
	j.machine.launchers.Call(presence.Rank{Job: j.ID, Number: rank}, c, now)
	j.noteAttendance()
}

// Left records that a rank's launcher ends. The rank's leases come back.
func (j *Job) Left(rank uint32, now time.Time) {
	j.machine.launchers.Leave(presence.Rank{Job: j.ID, Number: rank}, now)
	j.machine.detachDeparted(now)
}

// Announces records whether a rank's launcher will report that the rank is through. A call that the launcher made
// before its announcement may arrive after it and changes nothing.
func (j *Job) Announces(rank uint32, end bool) {
	if r := &j.ranks[rank]; !r.through {
		j.noteAnnouncement(r, end)
	}
}

// noteAnnouncement records whether a rank's launcher will report its end. The stored state has to follow.
func (j *Job) noteAnnouncement(r *Rank, end bool) {
	j.unwritten = j.unwritten || r.announcesEnd != end || r.announcementAssumed
	r.announcesEnd, r.announcementAssumed = end, false
}

// Through records that a rank is through: its trainer will not go back to an earlier checkpoint. The caller must
// store the state before it answers, even if the launcher reported this before, because an earlier write may have
// failed.
func (j *Job) Through(rank uint32) {
	j.noteAnnouncement(&j.ranks[rank], false)
	j.ranks[rank].through = true
}

// ForeignRun finds a rank that another run than the caller's attached last and of which something was acknowledged,
// the caller's own rank first. The caller's model would miss what that run acknowledged, on any rank. ForeignRun
// finds no rank for a caller that named no run, or that attached the rank before. progress returns how far a rank
// is.
func (j *Job) ForeignRun(rank uint32, caller Run, progress func(rank uint32) (epoch, delivered uint64, err error)) (
	consumed uint32, found bool, err error,
) {
	if own := j.Rank(rank); caller == (Run{}) || own == nil || own.run == caller {
		return rank, false, nil
	}
	begun := func(n uint32) (bool, error) {
		epoch, delivered, err := progress(n)
		return err == nil && (epoch > j.FirstEpoch || delivered > 0), err
	}
	if found, err := begun(rank); found || err != nil {
		return rank, found, err
	}
	for i := range j.ranks {
		if j.ranks[i].run == caller {
			continue
		}
		if found, err := begun(uint32(i)); found || err != nil {
			return uint32(i), found, err
		}
	}
	return rank, false, nil
}

// The times for which a job stays after its last acknowledgement, for ranks whose launchers announced that they
// would report when they are through: a trainer that dies before it writes its last checkpoint returns within this
// time. The time is shorter for an assumed announcement, of a rank that has not called this leader.
const (
	maxStay        = 10 * time.Minute
	maxAssumedStay = 30 * time.Second
)

// ranksMayReturn reports whether a rank may still come back to an earlier checkpoint.
func (j *Job) ranksMayReturn(now time.Time) bool {
	return slices.ContainsFunc(j.ranks, func(r Rank) bool {
		most := maxStay
		if r.announcementAssumed {
			most = maxAssumedStay
		}
		return r.announcesEnd && now.Sub(j.deliveredAt) < most
	})
}

// describeEnds lists which ranks announced their end, a character a rank, as record.State has it.
func (j *Job) describeEnds() string {
	b := make([]byte, len(j.ranks))
	for i, r := range j.ranks {
		switch {
		case r.announcementAssumed:
			b[i] = '?'
		case r.announcesEnd:
			b[i] = '1'
		default:
			b[i] = '0'
		}
	}
	return string(b)
}

// restoreEnds is the inverse of describeEnds. An announcement that no leader has stored is assumed.
func (j *Job) restoreEnds() {
	stays := j.state.Stays
	for i := range j.ranks {
		r := &j.ranks[i]
		r.announcesEnd, r.announcementAssumed = true, true
		if i < len(stays) && stays[i] != '?' {
			r.announcesEnd, r.announcementAssumed = stays[i] == '1', false
		}
	}
}

// describeRuns lists the ranks' runs, as record.State has it; nil when no rank is known to belong to one.
func (j *Job) describeRuns() []byte {
	b := make([]byte, 0, len(j.ranks)*record.RunBytes)
	for i := range j.ranks {
		b = append(b, j.ranks[i].run[:]...)
	}
	if len(bytes.Trim(b, "\x00")) == 0 {
		return nil
	}
	return b
}

// restoreRuns is the inverse of describeRuns.
func (j *Job) restoreRuns() {
	for i := range j.ranks {
		if from := i * record.RunBytes; from+record.RunBytes <= len(j.state.Runs) {
			j.ranks[i].run = Run(j.state.Runs[from : from+record.RunBytes])
		}
	}
}
