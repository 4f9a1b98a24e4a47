package lifecycle

import (
	"time"

	"github.com/millrace/millrace/trainmgr/control/record"
)

// keepsRoom is how long a job that no rank calls keeps its room on nodes, as a multiple of the silence after which a
// rank counts as detached: a trainer that starts again, or that stands still, does not lose the room at once.
const keepsRoom = 3

// room is the memory of drives, and the places among the jobs of nodes, that a job takes once nodes are prepared for
// it. A job that no rank calls gives its room to a job that needs it, and is prepared again when a rank attaches.
type room struct {
	*life
	has roomState
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

// Suspended reports whether the job has given its room to another job and was not prepared again: no rank can attach
// or get leases.
func (r *room) Suspended() bool { return r.state.Suspended }

// want records that a rank of the job calls. A job that has given its room away is prepared again.
func (r *room) want() {
	if (r.has == roomLeaving || r.has == roomLeft) && !r.Phase().Ended() {
		r.has = roomReturning
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
