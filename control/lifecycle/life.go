package lifecycle

import (
	"time"

	"github.com/millrace/millrace/control/record"
)

// Terms are the values that a job's specification fixes for the whole of the job's life.
type Terms struct {
	ID            string
	Name          string
	Submitted     time.Time
	Ranks         int
	Epochs        uint64        // Every edition has these epochs; with FollowOnce only the first one.
	FirstEpoch    uint64        // in which the job begins: that of the token it resumes from
	Follow        bool          // it takes partitions that appear as further editions
	FollowOnce    bool          // every further edition has one epoch
	MaxUnattended time.Duration // without a call of any rank; 0: Config.AbandonAfter and Config.AttachWithin
}

// life is what all parts of a job share: the terms, the state as it is stored, and the way to the machine's effects.
type life struct {
	Terms
	machine *Machine
	state   record.State

	unwritten   bool      // the state differs from the stored one
	storeAtOnce bool      // the state is to be written at once, not when storeEvery has gone by
	writtenAt   time.Time // when the state was written last
}

// State returns the job's state in the form in which it is stored. Its maps and slices are the job's: do not change
// them.
func (l *life) State() record.State { return l.state }

// Phase returns the job's phase.
func (l *life) Phase() record.Phase { return l.state.Phase }

// Words returns the phase and its reason as users read them.
func (l *life) Words() string { return l.state.Phase.Words(l.state.Why) }

// Unwritten reports whether the state differs from what is stored.
func (l *life) Unwritten() bool { return l.unwritten }

// Cancel ends the job at its owner's request. It changes nothing if the job has ended.
func (l *life) Cancel(now time.Time) { l.endJob(onCancelled, "", now) }

// Fail ends a job that cannot go on.
func (l *life) Fail(why string, now time.Time) { l.endJob(onFailed, why, now) }

// endJob ends the job. Its ledger and launchers remain until Conclude.
func (l *life) endJob(on phaseEvent, why string, now time.Time) {
	if l.Phase().Ended() || !l.transition(on, why) {
		return
	}
	l.state.Ended = now.UTC().Truncate(time.Second)
	delete(l.machine.runningByName, l.Name)
	l.machine.emit(EndJob{Job: l.ID, Phase: l.Phase()})
}

// waitFor moves a job that has begun to the phase waiting, for a reason.
func (l *life) waitFor(why string) {
	if l.Phase().Begun() {
		l.transition(onWaits, why)
	}
}

// AbandonAfter returns how long the job may be without a call of any rank; 0 means for ever. A job to which no rank has
// attached yet is given less time: the process that submitted it may have died.
func (l *life) AbandonAfter() time.Duration {
	if l.MaxUnattended > 0 {
		return l.MaxUnattended
	}
	after := max(l.machine.config.AbandonAfter, 0)
	if first := l.machine.config.AttachWithin; l.state.Unattached && first > 0 && (after == 0 || first < after) {
		return first
	}
	return after
}
