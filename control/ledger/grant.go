package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
)

// offer is a grant that is possible now.
type offer struct {
	drive *drive
	job   *job
	rank  *rank
	epoch *epoch
	place int
}

// schedule makes every grant that is possible. A stream goes to the job with the least start tag among the jobs that
// can use the stream.
func (l *Ledger) schedule(now time.Time) {
	for _, j := range l.jobs {
		j.pruneRunning()
	}
	if now.Before(l.config.GrantAfter) {
		return
	}
	var offers []offer
	var free []*drive
	for {
		free = free[:0]
		for _, d := range l.drives {
			if d.grantable() && d.freeStreams() > 0 {
				free = append(free, d)
			}
		}
		if len(free) == 0 {
			return
		}
		offers = offers[:0]
		for _, j := range l.jobs {
			if j.failed == "" {
				l.round++
				found := len(offers)
				offers = l.collectOffers(offers, j, free, now)
				if len(offers) == found { // holders come first
					offers = l.partnerOffers(offers, j, now)
				}
			}
		}
		if len(offers) == 0 {
			return
		}
		// Jobs are in the order in which they were added, and MinFunc returns the first of equal offers.
		best := slices.MinFunc(offers, func(a, b offer) int {
			if a.drive != b.drive {
				if a.drive.lessLoaded(b.drive) {
					return -1
				}
				return 1
			}
			return cmp.Compare(a.drive.startTag(a.job), b.drive.startTag(b.job))
		})
		l.grant(best, now)
	}
}

// grant starts the first pending piece of an offer's split.
func (l *Ledger) grant(o offer, now time.Time) {
	e, j, d, r := o.epoch, o.job, o.drive, o.rank
	sh := &e.shares[r.number]
	s := e.split(o.place)
	piece := sh.pendingOf(e, s)[0]
	rows := e.rowsOf(s, piece.From, piece.To)
	start := d.startTag(j)
	d.virtual, d.finish[j] = start, start+float64(rows)/j.Weight
	e.left[s.Partition] -= rows
	_, again := sh.again[o.place]
	if again {
		j.redelivered++
	}
	le := &lease{
		Lease: Lease{ID: l.newID(), Epoch: e.number, Split: o.place, From: piece.From, To: piece.To, Drive: d.id},
		job:   j, rank: r, epoch: e, drive: d, deadline: now.Add(l.config.LeaseTTL),
	}
	r.want--
	r.turn = l.counter
	j.countGrant(r, d)
	j.addRunning(d)
	l.startLease(le)
	l.effects.Grants = append(l.effects.Grants, Grant{Job: j.ID, Rank: r.number, Lease: le.Lease,
		MiniBatch: s.FirstBatch + piece.From - s.FirstFragment, Again: again})
}

// addRunning adds a drive to the job's running drives. If there is no room, the drive takes the place of an idle
// drive.
func (j *job) addRunning(d *drive) {
	if d.reach != Held || slices.Contains(j.running, d) {
		return
	}
	if j.Drives > 0 && len(j.running) >= j.Drives {
		if i := slices.IndexFunc(j.running, func(o *drive) bool { return j.streams[o] == 0 }); i >= 0 {
			j.running = slices.Delete(j.running, i, i+1)
		}
	}
	j.running = append(j.running, d)
}

// pruneRunning drops idle drives that are above the bound, cannot be granted, or have no rows left.
func (j *job) pruneRunning() {
	for i := 0; i < len(j.running); {
		d := j.running[i]
		if j.streams[d] == 0 && (j.Drives > 0 && i >= j.Drives || !d.grantable() || j.rowsLeft(d) == 0) {
			j.running = slices.Delete(j.running, i, i+1)
			continue
		}
		i++
	}
}

// activeDrives counts the holders that work for the job now.
func (j *job) activeDrives() int { return len(j.streams) - j.activeWorkers }

// allowedRunning returns the running drives that may be granted more.
func (j *job) allowedRunning() []*drive {
	if j.Drives > 0 && len(j.running) > j.Drives {
		return j.running[:j.Drives]
	}
	return j.running
}

// waitingRanks returns the ranks that can be granted a piece, ordered by the number of streams that they use, then
// by the time of their last grant.
func (j *job) waitingRanks() []*rank {
	var w []*rank
	for _, r := range j.ranks {
		if r.want > 0 && r.wanted == r.epoch && j.epoch(r.epoch) != nil {
			w = append(w, r)
		}
	}
	slices.SortStableFunc(w, func(a, b *rank) int {
		return cmp.Or(cmp.Compare(a.streams, b.streams), cmp.Compare(a.turn, b.turn))
	})
	return w
}

// avoidsDrive reports whether a drive failed the rank a moment ago.
func (r *rank) avoidsDrive(d *drive, now time.Time) bool {
	until, ok := r.avoid[d]
	return ok && now.Before(until)
}

// collectOffers appends the next possible grants of a job on holders, at most one a drive. Its running drives go
// first. Only if no running drive has both a free stream and work for a waiting rank, one more drive joins: the drive
// with the most rows left.
func (l *Ledger) collectOffers(out []offer, j *job, free []*drive, now time.Time) []offer {
	round, ranks := l.round, j.waitingRanks()
	ranks = slices.DeleteFunc(ranks, func(r *rank) bool { return l.turnOf(j, r, now) == ownTurn })
	if len(ranks) == 0 {
		return out
	}
	first := len(out)
	if j.Drives == 0 {
		for _, r := range ranks {
			out = j.offersForRank(out, r, free, round, now)
		}
		return out
	}
	for _, r := range ranks {
		out = j.offersForRank(out, r, j.allowedRunning(), round, now)
	}
	if len(out) > first {
		return out
	}
	room := j.activeDrives() < j.Drives
	for _, r := range ranks {
		if room || r.streams == 0 && !j.runningDriveServes(r, now) {
			out = j.offersForRank(out, r, free, round, now)
		}
	}
	if len(out) > first {
		best, most := first, int64(-1)
		for i := first; i < len(out); i++ {
			if n := j.rowsLeft(out[i].drive); n > most {
				best, most = i, n
			}
		}
		out[first] = out[best]
		out = out[:first+1]
	}
	return out
}

// offersForRank appends an offer to the rank for each of the drives that has room and was not offered yet in this
// round. In the order Deterministic it appends one offer in all.
func (j *job) offersForRank(out []offer, r *rank, drives []*drive, round uint64, now time.Time) []offer {
	e := j.epoch(r.epoch)
	e.refreshPlacement()
	sh := &e.shares[r.number]
	usable := func(d *drive) bool {
		return d.freeStreams() > 0 && d.round != round && d.grantable() && j.employs(d) && !r.avoidsDrive(d, now)
	}
	if j.Order == dataset.Deterministic {
		place, ok := e.nextSplit(sh)
		if !ok {
			return out
		}
		var best *drive
		for _, i := range e.holders[e.split(place).Partition] {
			if d := e.drives[i]; usable(d) && (best == nil || d.lessLoaded(best)) && slices.Contains(drives, d) {
				best = d
			}
		}
		if best != nil {
			best.round = round
			out = append(out, offer{best, j, r, e, place})
		}
		return out
	}
	for _, d := range drives {
		if d.busy >= d.streams || !usable(d) { // most drives of a busy cluster have no free stream
			continue
		}
		if i, known := e.index[d]; known {
			if place, ok := e.nextSplitOn(sh, i); ok {
				d.round = round
				out = append(out, offer{d, j, r, e, place})
			}
		}
	}
	return out
}

// runningDriveServes reports whether a running drive has pending numbers of a rank, even if its streams are taken now.
func (j *job) runningDriveServes(r *rank, now time.Time) bool {
	e := j.epoch(r.epoch)
	sh := &e.shares[r.number]
	for _, d := range j.allowedRunning() {
		i, known := e.index[d]
		if !known || !d.grantable() || !j.employs(d) || r.avoidsDrive(d, now) {
			continue
		}
		if j.Order == dataset.Deterministic {
			if place, ok := e.nextSplit(sh); ok && e.holds(i, place) {
				return true
			}
		} else if _, ok := e.nextSplitOn(sh, i); ok {
			return true
		}
	}
	return false
}

// preempt frees one stream on every drive that a rank waits for in vain. It takes the stream from a rank that has
// been blocked for longer than Config.Patience: the blocked rank fetches nothing, and the other ranks would have to
// wait until its trainer continues.
func (l *Ledger) preempt(now time.Time) {
	freed := false
	for _, j := range l.jobs {
		if j.failed != "" || now.Before(l.config.GrantAfter) {
			continue
		}
		for _, r := range j.waitingRanks() {
			e := j.epoch(r.epoch)
			sh := &e.shares[r.number]
			for i, d := range e.drives {
				if d == nil || !d.grantable() || !j.employs(d) || d.freeStreams() > 0 || r.avoidsDrive(d, now) {
					continue
				}
				if j.Order == dataset.Deterministic {
					if place, ok := e.nextSplit(sh); !ok || !e.holds(i, place) {
						continue
					}
				} else if _, ok := e.nextSplitOn(sh, i); !ok {
					continue
				}
				freed = l.freeBlocked(d, r, now) || freed
			}
			freed = l.preemptPartners(j, r, now) || freed
		}
	}
	if freed {
		l.schedule(now)
	}
}

// preemptPartners does the same as preempt for the workers of reach Any that make splits for a rank.
func (l *Ledger) preemptPartners(j *job, r *rank, now time.Time) (freed bool) {
	if len(j.enlisted) == 0 {
		return false
	}
	e := j.epoch(r.epoch)
	e.refreshPlacement()
	j.refreshCrew(l.placementVersion)
	turn := l.turnOf(j, r, now)
	j.partners(r, turn, func(d *drive, all bool) bool {
		if d.freeStreams() > 0 || r.avoidsDrive(d, now) {
			return true
		}
		if _, ok := e.nextForPartner(&e.shares[r.number], l.readableBy(e, d), all); ok {
			freed = l.freeBlocked(d, r, now) || freed
		}
		return true
	})
	return freed
}

// freeBlocked revokes the lease on a drive whose rank has been blocked longest, except leases of rank r. It reports
// whether there was such a lease.
func (l *Ledger) freeBlocked(d *drive, r *rank, now time.Time) bool {
	blocking := l.longestBlockedLease(d, r, now)
	if blocking == nil {
		return false
	}
	l.revoke(blocking, "another rank waits for the drive, and this one's queue is full")
	return true
}

// longestBlockedLease returns the lease on a drive whose rank has been blocked longest, except leases of rank r. It
// returns nil if no rank has been blocked for longer than Config.Patience.
func (l *Ledger) longestBlockedLease(d *drive, r *rank, now time.Time) *lease {
	var worst *lease
	for _, le := range d.leases {
		since := le.rank.blocked
		if le.Fetched || le.rank == r || since.IsZero() || now.Sub(since) < l.config.Patience {
			continue
		}
		if worst == nil || since.Before(worst.rank.blocked) || since.Equal(worst.rank.blocked) && le.ID < worst.ID {
			worst = le
		}
	}
	return worst
}
