package control

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/ledger"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/quantity"
)

// mostHolders is how many jobs a job names that hold the room for which it waits.
const mostHolders = 3

// isRoomError reports whether a node refused a job because it has no room: no memory of a drive, or no place among the
// node's jobs.
func isRoomError(err error) bool { return connect.CodeOf(err) == connect.CodeResourceExhausted }

// hasRoomOn reports whether a node is prepared for an edition of the job, or for a pass over its filter's columns. l.mu
// is held.
func (j *job) hasRoomOn(a *nodeState) bool {
	return slices.ContainsFunc(j.preparations(), func(g *edition) bool { return a.preparedJobs[g.Digest] })
}

// lacksRoomOn reports whether a node refused the job for lack of room when it was asked last. l.mu is held.
func (j *job) lacksRoomOn(a *nodeState) bool {
	return slices.ContainsFunc(j.preparations(), func(g *edition) bool { return isRoomError(a.unprepared[g.Digest]) })
}

// preparations returns what nodes are prepared for: the job's editions, and passes over its filter's columns. l.mu is
// held.
func (j *job) preparations() []*edition {
	return slices.AppendSeq(slices.Clone(j.passes), maps.Values(j.editions))
}

// roomHolders returns the other jobs that a node is prepared for. l.mu is held.
func (l *leader) roomHolders(a *nodeState, but *job) (holders []*job) {
	for _, j := range l.jobs {
		if j != but && j.OnNodes() && j.hasRoomOn(a) {
			holders = append(holders, j)
		}
	}
	return holders
}

// askForRoom has a job that no rank calls give its room to a job whose ranks call and for which a node had no room. Of
// several jobs it is the one that no rank has called for longest, and one job at a time. If every such job is called,
// one yields that lacks room itself and was submitted later. l.mu is held.
func (l *leader) askForRoom(a *nodeState, to *job, now time.Time) {
	if !to.Attended(now) {
		return
	}
	for _, j := range l.jobs {
		if j.Withdrawing() {
			return
		}
	}
	holders := l.roomHolders(a, to)
	slices.SortFunc(holders, func(a, b *job) int { return a.State().Unattended.Compare(b.State().Unattended) })
	gives := func(j *job) bool { return j.GiveRoom(to.ID, now) }
	yields := func(j *job) bool {
		return l.lacksRoom(j) && j.YieldRoom(to.Job.Job, apiv1.RoomHeldBy+to.ID+", which was submitted before")
	}
	_ = slices.ContainsFunc(holders, gives) || slices.ContainsFunc(holders, yields)
	l.settle(now)
}

// lacksRoom reports whether a node refused the job for lack of room when it was asked last. l.mu is held.
func (l *leader) lacksRoom(j *job) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(l.nodes)), j.lacksRoomOn)
}

// roomWords says what a job waits for that a node has no room for: the room, and the jobs that hold it if the leader
// knows any. l.mu is held.
func (l *leader) roomWords(j *job) string {
	var names []string
	for _, a := range l.nodes {
		if !j.lacksRoomOn(a) {
			continue
		}
		for _, holder := range l.roomHolders(a, j) {
			names = append(names, holder.ID)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	switch n := len(names); {
	case n == 0:
		return "for room"
	case n > mostHolders:
		names = append(names[:mostHolders], quantity.Of(n-mostHolders, "more job"))
	}
	return apiv1.RoomHeldBy + strings.Join(names, ", ")
}

// withdraw makes the nodes forget a job that has given its room away. Its life goes on when a rank attaches.
func (c *conductor) withdraw() {
	c.mu.Lock()
	editions := slices.Collect(maps.Values(c.job.editions))
	c.delist()
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.ctx, 2*nodeTime)
	defer cancel()
	for _, g := range editions {
		c.finishEdition(ctx, g)
	}
	c.happen(func(time.Time) { c.job.Withdrawn() })
}

// delist takes the workers of any reach that are enlisted for the job out of the ledger: they are enlisted again once
// they are prepared again. l.mu is held.
func (c *conductor) delist() {
	now := time.Now()
	c.fleet.Live(func(s *apiv1.NodeStatus) {
		for _, d := range s.Drives {
			if fleet.ReachesAny(d) {
				// a worker that the ledger does not know, or that serves another job, is not enlisted
				_ = c.machine.Ledger.Enlist(c.job.ID, ledger.DriveID{Node: s.Name, Name: d.Name}, false, now)
			}
		}
	})
	c.settle(now)
}
