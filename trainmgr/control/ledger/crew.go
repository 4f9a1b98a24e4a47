package ledger

import (
	"time"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// partners calls fn for the workers of reach Any that make splits for a rank in a turn, until fn returns false. The
// workers that serve the rank alone come first.
func (j *job) partners(r *rank, turn turn, fn func(d *drive) bool) {
	if turn != othersTurn {
		for _, d := range j.own[r.number] {
			if !fn(d) {
				return
			}
		}
	}
	if turn == ownTurn {
		return
	}
	a := allocation.Assign(len(j.ranks), len(j.shared), partnersOfRank)
	for i := range a.Fan() {
		if !fn(j.shared[a.Worker(int(r.number), i)]) {
			return
		}
	}
}

// partnerOffers appends, for each rank that waits, at most one offer on a worker of reach Any.
func (l *Ledger) partnerOffers(out []offer, j *job, now time.Time) []offer {
	if len(j.enlisted) == 0 {
		return out
	}
	j.refreshCrew(l.placementVersion)
	for _, r := range j.waitingRanks() {
		e := j.epoch(r.epoch)
		e.refreshPlacement()
		e.refreshReadable(l.placementVersion)
		turn := l.turnOf(j, r, now)
		place, ok := e.nextForPartner(&e.shares[r.number], j.partnersHelp(turn))
		if !ok {
			continue
		}
		j.partners(r, turn, func(d *drive) bool {
			if d.round == l.round || d.freeStreams() == 0 || r.avoidsDrive(d, now) {
				return true
			}
			d.round = l.round
			out = append(out, offer{d, j, r, e, place})
			return false
		})
	}
	return out
}

// partnersHelp reports whether workers of reach Any make splits in a turn that holders could make too.
func (j *job) partnersHelp(turn turn) bool { return turn == ownTurn || j.allowedWorkers != 0 }

// readability records which partitions of an epoch can be read, and which readable partitions have no holder that
// makes their splits.
type readability struct {
	readableVersion uint64 // of the ledger's placement
	readable        []bool // by partition
	orphaned        []bool // by partition: readable, and no holder can be granted a split of it
	unreadable      int    // partitions
	orphans         int    // partitions
}

// refreshReadable examines every partition again if a drive has come, gone, or changed its state since the last
// call.
func (e *epoch) refreshReadable(version uint64) {
	if e.readableVersion == version {
		return
	}
	e.readableVersion, e.unreadable, e.orphans = version, 0, 0
	if e.readable == nil {
		e.readable, e.orphaned = make([]bool, len(e.holders)), make([]bool, len(e.holders))
	}
	for p, holders := range e.holders {
		readable, made := false, false
		for _, i := range holders {
			if d := e.drives[i]; d != nil && d.state == driveReady {
				readable = true
				made = made || d.grantable() && e.job.employs(d)
			}
		}
		e.readable[p], e.orphaned[p] = readable, readable && !made
		if !readable {
			e.unreadable++
		}
		if e.orphaned[p] {
			e.orphans++
		}
	}
	for i := range e.shares {
		e.shares[i].partnerCursor, e.shares[i].orphanCursor = 0, 0
	}
}

// nextForPartner returns the split of a share that a worker of reach Any makes next: a split that no holder can make
// or, if all is true, any split that can be read. In the order Deterministic it is the share's next split or none.
func (e *epoch) nextForPartner(sh *share, all bool) (place int, ok bool) {
	if e.job.Order == dataset.Deterministic {
		place, ok = e.nextSplit(sh)
		if !ok {
			return 0, false
		}
		p := e.split(place).Partition
		return place, e.readable[p] && (all || e.orphaned[p])
	}
	if e.orphans > 0 {
		if place, ok = e.nextWhere(sh, e.orphaned, &sh.orphanCursor); ok {
			return place, true
		}
	}
	switch {
	case !all:
		return 0, false
	case e.unreadable == 0:
		if len(sh.returned) > 0 {
			return sh.returned[0], true
		}
		return e.nextSplit(sh)
	}
	return e.nextWhere(sh, e.readable, &sh.partnerCursor)
}

// nextWhere returns the first split with pending numbers whose partition is marked. Splits with returned leases go
// before fresh splits. The cursor is the place below which no fresh split is marked.
func (e *epoch) nextWhere(sh *share, marked []bool, cursor *int) (place int, ok bool) {
	for _, p := range sh.returned {
		if marked[e.split(p).Partition] {
			return p, true
		}
	}
	at := max(*cursor, sh.first)
	for at < sh.last {
		if at = sh.first + sh.taken.next(at-sh.first, sh.last-sh.first, false); at < sh.last {
			if marked[e.split(at).Partition] {
				break
			}
			at++
		}
	}
	*cursor = at
	return at, at < sh.last
}
