package upkeep

import (
	"time"

	"github.com/millrace/millrace/sdk/dataset"
)

// maxLeftover is how many editions a node is asked to forget at once because its heartbeats list them.
const maxLeftover = 16

// review decides what a node has to be given or asked next.
func (k *Keeper) review(n *node, t *jobTable, now time.Time) {
	if n.alive && n.known && n.scan {
		k.scanJobs(n, t)
	}
	for _, p := range n.sorted(t) {
		k.reviewPair(n, p, t, now)
	}
	if !n.alive || !n.known {
		return
	}
	k.finishLeftover(n, t)
	k.reviewDrain(n, now)
	if !n.listed && !n.untried(t) {
		k.listDrives(n)
	}
	if n.enlist {
		k.enlistWorkers(n, t)
	}
}

// scanJobs determines which editions the node is to be prepared for.
func (k *Keeper) scanJobs(n *node, t *jobTable) {
	n.scan, n.enlist = false, true // A job may use an edition that another job had prepared.
	for _, p := range n.pairs {
		p.wanted = false
	}
	for i := range t.jobs {
		j := &t.jobs[i]
		serves := j.Makers.AllowWorkers() && n.report.serves(j)
		for _, e := range j.Editions {
			if p := n.pairs[e.Digest]; !e.Begun || p != nil && (p.prepared || p.wanted) {
				continue
			}
			if serves || j.Makers.AllowHolders() && k.config.Holds(n.name, e.Manifest) {
				n.pairOf(e.Digest).wanted = true
			}
		}
	}
}

// reviewPair calls the node for an edition if that is due: to prepare the edition, or to forget it.
func (k *Keeper) reviewPair(n *node, p *pair, t *jobTable, now time.Time) {
	job := t.user(p.digest)
	switch {
	case p.call != 0:
	case job == "" && !p.prepared:
		k.reply(p, nil) // The job has ended meanwhile, or has given its room away.
		delete(n.pairs, p.digest)
	case job == "":
		k.reply(p, nil)
		p.call = k.nextCall()
		k.emit(Finish{p.call, n.name, p.digest})
	case p.prepared:
		k.reply(p, nil)
	case !n.alive:
		k.reply(p, &AwayError{n.name})
		delete(n.pairs, p.digest)
	case len(p.waiting) > 0:
		k.prepare(n, p, job)
	case n.known && !n.turn && p.due(now):
		n.turn, p.inTurn = true, true
		k.prepare(n, p, job)
	case p.wanted && now.Before(p.repeatAt):
		k.repeat(p.repeatAt)
	}
	if p.roomNeeded && job != "" {
		p.roomNeeded = false
		k.emit(NeedRoom{n.name, job, n.holders(job, t)})
	}
}

func (k *Keeper) prepare(n *node, p *pair, job string) {
	p.call = k.nextCall()
	k.emit(Prepare{p.call, n.name, job, p.digest})
}

// finishLeftover has the node forget editions that its heartbeats list and that no job uses: the jobs ended while the
// node could not be reached, or its answer was lost. The worker of a launcher ends with its job.
func (k *Keeper) finishLeftover(n *node, t *jobTable) {
	if n.report.Owned {
		return
	}
	under := 0
	for _, d := range n.report.Jobs {
		p := n.pairs[d]
		if p == nil && t.user(d) == "" {
			p = n.pairOf(d)
			p.call = k.nextCall()
			k.emit(Finish{p.call, n.name, d})
		}
		if p != nil && p.call != 0 {
			if under++; under == maxLeftover {
				return // The answers have the node reviewed again.
			}
		}
	}
}

// reviewDrain asks the node to refuse new splits, or to accept them again, as the operator wants.
func (k *Keeper) reviewDrain(n *node, now time.Time) {
	asked := n.report.DrainAsked
	switch {
	case !n.drain.needsCall(asked):
	case now.Before(n.drain.repeatAt):
		k.repeat(n.drain.repeatAt)
	default:
		n.drain.call = k.nextCall()
		k.emit(Drain{n.drain.call, n.name, n.report.Incarnation, asked})
	}
}

// untried reports whether the node was not yet asked to prepare an edition that it is wanted for, or has not answered.
func (n *node) untried(t *jobTable) bool {
	for _, p := range n.pairs {
		if p.wanted && !p.prepared && !p.tried && t.user(p.digest) != "" {
			return true
		}
	}
	return false
}

// holders names the other jobs that the node is prepared for, the earliest first.
func (n *node) holders(but string, t *jobTable) (jobs []string) {
	for i := range t.jobs {
		if j := &t.jobs[i]; j.ID != but && n.hasRoomFor(j) {
			jobs = append(jobs, j.ID)
		}
	}
	return jobs
}

// hasRoomFor reports whether the node is prepared for an edition of a job, or for a pass over its filter's columns.
func (n *node) hasRoomFor(j *Job) bool {
	for _, e := range j.Editions {
		if p := n.pairs[e.Digest]; p != nil && p.prepared {
			return true
		}
	}
	return false
}

// lacksRoomFor reports whether the node refused one of some editions for lack of room when it was asked last.
func (n *node) lacksRoomFor(editions []dataset.Digest) bool {
	for _, d := range editions {
		if p := n.pairs[d]; n.alive && p != nil && p.last.Outcome == NoRoom {
			return true
		}
	}
	return false
}
