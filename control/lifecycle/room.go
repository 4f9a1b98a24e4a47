package lifecycle

import (
	"cmp"
	"time"

	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/sdk/dataset"
)

// keepsRoom is how long a job that no rank calls keeps its room on nodes, as a multiple of the silence after which a
// rank counts as detached: a trainer that starts again, or that stands still, does not lose the room at once.
const keepsRoom = 3

// room is the memory of drives, and the places among the jobs of nodes, that a job takes once nodes are prepared for
// it. A job that no rank calls gives its room to a job that needs it, and is prepared again when a rank attaches. Of
// jobs that are being prepared and wait for each other's room, later ones yield to earlier ones.
type room struct {
	*life
	has       roomState
	yieldedTo *Job // nil: the job has not yielded
}

// roomState is whether nodes are prepared for a job.
type roomState uint8

const (
	roomKept      roomState = iota // as far as the job's phase says
	roomLeaving                    // the nodes are to forget the job
	roomLeft                       // they have forgotten it
	roomReturning                  // a rank calls: the nodes are to be prepared again
)

// OnNodes reports whether nodes are prepared for the job, or are to be prepared now.
func (r *room) OnNodes() bool {
	return !r.Phase().Ended() && (r.has == roomKept || r.has == roomReturning)
}

// Uses reports whether nodes are to be prepared for an edition of the job with the digest. Two jobs of one pipeline,
// data and options share a digest.
func (j *Job) Uses(digest dataset.Digest) bool { return j.OnNodes() && j.hasEditionOf(digest) }

// Suspended reports whether the job has given its room to another job and was not prepared again: no rank can attach
// or get leases.
func (r *room) Suspended() bool { return r.state.Suspended }

// want records that a rank of the job calls. A job that has given its room away is prepared again, but not while a job
// to which it has yielded is still taking room.
func (r *room) want() {
	if r.yieldedTo != nil && r.yieldedTo.takesRoom() {
		return
	}
	if (r.has == roomLeaving || r.has == roomLeft) && !r.Phase().Ended() {
		r.has, r.yieldedTo = roomReturning, nil
		r.suspend("for nodes to be prepared again")
	}
}

// noteSilence records that no rank of the job calls. A job that was to be prepared again leaves its room.
func (r *room) noteSilence() {
	if r.has == roomReturning {
		r.has = roomLeaving
		r.suspend("for a rank to attach")
	}
}

func (r *room) suspend(why string) {
	r.state.Suspended = true
	r.transition(onSuspended, why)
}

// GiveRoom has a job that no rank calls give its room to another job. It reports whether the job does. P of the job
// must not be on its way.
func (j *Job) GiveRoom(to string, now time.Time) bool {
	since := j.state.Unattended
	if j.Attended(now) || j.has != roomKept || since.IsZero() || j.Phase() == record.Measuring ||
		j.Phase().Ended() || now.Sub(since) < keepsRoom*j.machine.config.Presence.Silence {
		return false
	}
	j.has = roomLeaving
	j.suspend("for a rank to attach: its room goes to job " + to)
	return true
}

// YieldRoom has a job that nodes are being prepared for give the room that it has already to another such job, which
// was submitted before it. It reports whether the job does. A node that refuses one of them may be prepared for the
// other, and the other way round on another node: of all jobs that wait like this the earliest goes on, since it never
// yields. Nothing of a job that is being prepared is leased. why names the other job.
func (j *Job) YieldRoom(to *Job, why string) bool {
	if !j.takesRoom() || !to.takesRoom() || !to.submittedBefore(j) {
		return false
	}
	j.has, j.yieldedTo = roomLeaving, to
	j.suspend(why)
	return true
}

// takesRoom reports whether nodes are being prepared for the job.
func (r *room) takesRoom() bool {
	return r.has == roomReturning && !r.Phase().Ended() || r.has == roomKept && r.Phase() == record.Preparing
}

// submittedBefore reports whether the job was submitted before another one. IDs decide between two of one time.
func (l *life) submittedBefore(other *Job) bool {
	return cmp.Or(l.Submitted.Compare(other.Submitted), cmp.Compare(l.ID, other.ID)) < 0
}

// Withdrawing reports whether the nodes are to forget the job, which has given its room away.
func (r *room) Withdrawing() bool { return r.has == roomLeaving && !r.Phase().Ended() }

// Withdrawn records that the nodes have forgotten the job.
func (j *Job) Withdrawn() {
	if j.has == roomLeaving {
		j.has = roomLeft
	}
}

// Returning reports whether nodes are to be prepared again for the job, which had given its room away.
func (r *room) Returning() bool { return r.has == roomReturning && !r.Phase().Ended() }

// returned records that the nodes are prepared again for a job that had given its room away.
func (j *Job) returned() {
	j.has, j.state.Suspended = roomKept, false
	if j.Phase() == record.Preparing {
		j.transition(onPrepared, "")
	} else {
		j.transition(onResumed, "")
	}
}
