package control

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/upkeep"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/quantity"
)

// mostHolders is how many jobs a job names that hold the room for which it waits.
const mostHolders = 3

// isRoomError reports whether a node refused a job because it has no room: no memory of a drive, or no place among the
// node's jobs.
func isRoomError(err error) bool { return connect.CodeOf(err) == connect.CodeResourceExhausted }

// askForRoomLocked has a job that no rank calls give its room to a job whose ranks call and for which a node had no
// room. Of several jobs it is the one that no rank has called for longest, and one job at a time. If every such job is
// called, one yields that lacks room itself and was submitted later.
func (l *leader) askForRoomLocked(e upkeep.NeedRoom, now time.Time) {
	to := l.mu.jobs[e.Job]
	if !to.Attended(now) {
		return
	}
	for _, j := range l.mu.jobs {
		if j.Withdrawing() {
			return
		}
	}
	holders := make([]*job, len(e.Holders))
	for i, id := range e.Holders {
		holders[i] = l.mu.jobs[id]
	}
	slices.SortStableFunc(holders, func(a, b *job) int { return a.State().Unattended.Compare(b.State().Unattended) })
	gives := func(j *job) bool { return j.GiveRoom(to.ID, now) }
	why := apiv1.RoomHeldBy + to.ID + ", which was submitted before"
	yields := func(j *job) bool { return l.mu.upkeep.LacksRoom(j.digests()) && j.YieldRoom(to.Job.Job, why) }
	_ = slices.ContainsFunc(holders, gives) || slices.ContainsFunc(holders, yields)
}

// roomWords says what a job waits for that a node has no room for: the room, and the jobs that hold it if the leader
// knows any.
func (j *job) roomWords(nodes *upkeep.Keeper) string {
	names := nodes.RoomHolders(j.ID, j.digests())
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
	var editions []*edition
	c.happen(func(time.Time) {
		editions = slices.Collect(maps.Values(c.job.editions))
		c.mu.upkeep.Withdrawn(c.job.ID)
	})
	ctx, cancel := context.WithTimeout(c.ctx, 2*nodeTime)
	defer cancel()
	for _, g := range editions {
		c.finishEdition(ctx, g)
	}
	c.happen(func(time.Time) { c.job.Withdrawn() })
}
