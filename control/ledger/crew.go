package ledger

import (
	"slices"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// partners calls fn for the workers of reach Any that make splits for a rank in a turn, until fn returns false. all
// says whether the worker may make splits that holders could make, too. The workers that serve the rank alone come
// first, and last those which are granted only because they may have files that nobody else has.
func (j *job) partners(r *rank, turn turn, fn func(d *drive, all bool) bool) {
	all := j.partnersHelp(turn)
	if turn != othersTurn {
		for _, d := range j.own[r.number] {
			if !fn(d, all) {
				return
			}
		}
	}
	if turn == ownTurn {
		return
	}
	a := allocation.Assign(len(j.ranks), len(j.shared), partnersOfRank)
	assigned := make([]*drive, a.Fan())
	for i := range assigned {
		assigned[i] = j.shared[a.Worker(int(r.number), i)]
		if !fn(assigned[i], all) {
			return
		}
	}
	for _, d := range j.withFiles {
		if !slices.Contains(assigned, d) && !fn(d, false) {
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
		turn := l.turnOf(j, r, now)
		j.partners(r, turn, func(d *drive, all bool) bool {
			if d.round == l.round || d.freeStreams() == 0 || r.avoidsDrive(d, now) {
				return true
			}
			place, ok := e.nextForPartner(&e.shares[r.number], l.readableBy(e, d), all)
			if !ok {
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

// readability records which partitions of an epoch a worker of reach Any can read, and which of these have no holder
// that makes their splits.
type readability struct {
	readable   []bool // by partition
	orphaned   []bool // by partition: readable, and no holder can be granted a split of it
	unreadable int    // partitions
	orphans    int    // partitions
}

// reading records what the workers of reach Any can read of an epoch: every worker what lies on drives and in stores,
// and some workers also what lies in files of their own machines.
type reading struct {
	readability                             // Every worker can read this.
	readableVersion uint64                  // readableVersion is that of the ledger's placement.
	ownFiles        map[*drive]*readability // Workers have these files for themselves, and nothing else holds them.
}

// refreshReadable examines every partition again if a drive has come, gone, or changed its state since the last
// call.
func (e *epoch) refreshReadable(version uint64) {
	if e.readableVersion == version {
		return
	}
	e.readableVersion, e.unreadable, e.orphans, e.ownFiles = version, 0, 0, nil
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
		clear(e.shares[i].partnerCursors)
	}
}

// readableBy returns what a worker of reach Any can read of an epoch.
func (l *Ledger) readableBy(e *epoch, d *drive) *readability {
	e.refreshReadable(l.placementVersion)
	if e.unreadable == 0 || len(d.partitions) == 0 {
		return &e.readability
	}
	if v := e.ownFiles[d]; v != nil {
		return v
	}
	v := &readability{readable: slices.Clone(e.readable), orphaned: slices.Clone(e.orphaned), unreadable: e.unreadable,
		orphans: e.orphans}
	for name := range d.partitions {
		if p, ok := e.byName[name]; ok && !v.readable[p] { // no holder that is ready has the partition
			v.readable[p], v.orphaned[p] = true, true
			v.unreadable--
			v.orphans++
		}
	}
	if v.unreadable == e.unreadable {
		v = &e.readability
	}
	if e.ownFiles == nil {
		e.ownFiles = map[*drive]*readability{}
	}
	e.ownFiles[d] = v
	return v
}

// partnerCursors are the places of a share below which no split is fresh that a worker of reach Any can make, and that
// no holder can make.
type partnerCursors struct{ readable, orphaned int }

// nextForPartner returns the split of a share that a worker of reach Any makes next, by what the worker can read: a
// split that no holder can make or, if all is true, any split that can be read. In the order Deterministic it is the
// share's next split or none.
func (e *epoch) nextForPartner(sh *share, v *readability, all bool) (place int, ok bool) {
	if e.job.Order == dataset.Deterministic {
		place, ok = e.nextSplit(sh)
		if !ok {
			return 0, false
		}
		p := e.split(place).Partition
		return place, v.readable[p] && (all || v.orphaned[p])
	}
	at := sh.partnerCursors[v]
	if at == nil {
		at = &partnerCursors{}
		sh.partnerCursors[v] = at
	}
	if v.orphans > 0 {
		if place, ok = e.nextWhere(sh, v.orphaned, &at.orphaned); ok {
			return place, true
		}
	}
	switch {
	case !all:
		return 0, false
	case v.unreadable == 0:
		if len(sh.returned) > 0 {
			return sh.returned[0], true
		}
		return e.nextSplit(sh)
	}
	return e.nextWhere(sh, v.readable, &at.readable)
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
		if at = sh.first + sh.taken.Next(at-sh.first, sh.last-sh.first, false); at < sh.last {
			if marked[e.split(at).Partition] {
				break
			}
			at++
		}
	}
	*cursor = at
	return at, at < sh.last
}
