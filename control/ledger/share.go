package ledger

import (
	"slices"
	"sort"

	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/sdk/dataset"
)

// share is a rank's part of an epoch: the numbers [lo, hi) that were not resumed, and the splits [first, last) that
// contain these numbers. Parts of the first and the last split may belong to other ranks.
type share struct {
	rank        *rank
	miniBatches dataset.Range // all their fragments are [lo, hi)
	lo, hi      uint64
	first, last int
	owned       amount         // what was not resumed
	delivered   amount         // what is delivered of owned
	taken       numberset.Bits // by place-first: the split was granted before, or is delivered; otherwise it is fresh
	done        numberset.Bits // by place-first: every owned number of the split is delivered

	// Of splits that are taken and not done:
	partial  map[int]partial
	again    map[int]struct{} // some lease of the split came back
	returned []int            // ascending: some number is neither delivered nor leased

	next   []int32 // by the placement's drive: index in its list below which no split is fresh
	cursor int     // place below which no split is fresh

	partnerCursors map[*readability]*partnerCursors // by what a worker of reach Any can read
}

// partial is what is delivered of a split's portion that is not done: some owed numbers, and the resumed ones.
type partial struct {
	delivered numberset.Runs
	runs      int // runs counts the runs of owedRuns.
}

// prepareShare begins a share of which only the resumed numbers are delivered.
func (e *epoch) prepareShare(sh *share) {
	sh.first, sh.last = e.placeOf(sh.lo), e.placeOf(sh.lo)
	if sh.lo < sh.hi {
		sh.last = e.placeOf(sh.hi-1) + 1
	}
	n := sh.last - sh.first
	sh.taken, sh.done = numberset.NewBits(n), numberset.NewBits(n)
	sh.reset()
	if len(e.base) > 0 {
		for p := sh.first; p < sh.last; p++ {
			if from, to := sh.portion(e.split(p)); e.base.Covers(from, to) {
				sh.taken.Set(p - sh.first)
				sh.done.Set(p - sh.first)
			}
		}
	}
}

// reset forgets all but the bitmaps.
func (sh *share) reset() {
	sh.partial, sh.again, sh.returned = make(map[int]partial), make(map[int]struct{}), nil
	sh.delivered = amount{}
	sh.restart()
}

// restart looks for fresh splits from the beginning.
func (sh *share) restart() {
	sh.cursor = sh.first
	sh.partnerCursors = map[*readability]*partnerCursors{}
	clear(sh.next)
}

// restorePart makes a share's part of a split delivered.
func (e *epoch) restorePart(sh *share, s dataset.Split) {
	from, to := sh.portion(s)
	at := s.Position - sh.first
	if from == to || sh.done.Get(at) {
		return
	}
	sh.delivered.gain(s, sh.deliveredOf(e, s), numberset.Runs{{From: from, To: to}})
	sh.taken.Set(at)
	sh.done.Set(at)
	if len(sh.partial) > 0 {
		e.keepPartial(sh, s, nil)
		sh.updateReturned(e, s)
	}
	e.uncounted = true
}

// keepPartial notes the delivered numbers of a split's portion, including the resumed ones, or nil if they are all
// delivered or none is. The chunk's record changes with them.
func (e *epoch) keepPartial(sh *share, s dataset.Split, have numberset.Runs) {
	e.runs -= sh.partial[s.Position].runs
	delete(sh.partial, s.Position)
	if have != nil {
		runs := len(have)
		if len(e.base) > 0 {
			runs = len(e.owedRuns(s, have))
		}
		e.runs += runs
		sh.partial[s.Position] = partial{have, runs}
	}
	e.journal.chunkChanged(s.Position)
}

func (sh *share) complete() bool { return sh.delivered.fragments == sh.owned.fragments }

// portion returns the numbers of a split that are in the share's range.
func (sh *share) portion(s dataset.Split) (from, to uint64) {
	from, to = max(sh.lo, s.FirstFragment), min(sh.hi, s.End())
	return from, max(from, to)
}

// deliveredOf returns the delivered numbers of a split's portion, including the resumed ones. Do not change the
// result.
func (sh *share) deliveredOf(e *epoch, s dataset.Split) numberset.Runs {
	from, to := sh.portion(s)
	if sh.done.Get(s.Position - sh.first) {
		return numberset.Runs(nil).Append(from, to)
	}
	if have, ok := sh.partial[s.Position]; ok {
		return have.delivered
	}
	if len(e.base) == 0 {
		return nil
	}
	return e.base.Within(from, to)
}

// pendingOf returns the numbers of a split's portion that are neither delivered nor leased.
func (sh *share) pendingOf(e *epoch, s dataset.Split) numberset.Runs {
	from, to := sh.portion(s)
	have := sh.deliveredOf(e, s)
	if out := sh.rank.leasesWithin(e, from, to); len(out) > 0 {
		have = slices.Clone(have)
		for _, le := range out {
			have = have.Union(max(le.From, from), min(le.To, to))
		}
	}
	return have.Gaps(from, to)
}

// leasesWithin returns the rank's leases that overlap [from, to) of an epoch.
func (r *rank) leasesWithin(e *epoch, from, to uint64) []*lease {
	i := sort.Search(len(r.leases), func(i int) bool {
		le := r.leases[i]
		return le.epoch.number > e.number || le.epoch == e && le.To > from
	})
	k := i
	for k < len(r.leases) && r.leases[k].epoch == e && r.leases[k].From < to {
		k++
	}
	return r.leases[i:k]
}

// updateReturned adds a taken split to the returned splits if the split has pending numbers, and removes it
// otherwise.
func (sh *share) updateReturned(e *epoch, s dataset.Split) {
	i, there := slices.BinarySearch(sh.returned, s.Position)
	should := sh.taken.Get(s.Position-sh.first) && !sh.done.Get(s.Position-sh.first) && len(sh.pendingOf(e, s)) > 0
	switch {
	case should && !there:
		sh.returned = slices.Insert(sh.returned, i, s.Position)
	case !should && there:
		sh.returned = slices.Delete(sh.returned, i, i+1)
	}
}

// deliver makes numbers of a split's portion delivered. It returns the count of numbers that were not delivered before.
func (l *Ledger) deliver(e *epoch, sh *share, s dataset.Split, numbers numberset.Runs) uint64 {
	at := s.Position - sh.first
	if sh.done.Get(at) {
		return 0
	}
	from, to := sh.portion(s)
	before := sh.deliveredOf(e, s)
	have := numberset.Runs(dataset.UnionRanges(before, numbers))
	fresh := sh.delivered.gain(s, before, have)
	if fresh == 0 {
		return 0
	}
	for _, r := range dataset.IntersectRanges(sh.pendingOf(e, s), numbers) {
		e.left[s.Partition] -= e.rowsOf(s, r.From, r.To)
	}
	sh.taken.Set(at)
	if have.Covers(from, to) {
		sh.done.Set(at)
		delete(sh.again, s.Position)
		e.keepPartial(sh, s, nil)
		e.settleSplit(s.Position)
	} else {
		e.keepPartial(sh, s, have)
	}
	for _, le := range slices.Clone(sh.rank.leasesWithin(e, numbers[0].From, numbers[len(numbers)-1].To)) {
		if have.Covers(le.From, le.To) {
			l.transition(le, onDelivered)
		}
	}
	sh.updateReturned(e, s)
	l.checkDelivered(e, sh, s)
	return fresh
}

// rewind sets which numbers of a share are delivered, forward or back. The rank has no lease of the share then.
func (e *epoch) rewind(sh *share, has numberset.Runs) {
	before := sh.partial
	for _, have := range before {
		e.runs -= have.runs
	}
	sh.reset()
	for p := sh.first; p < sh.last; p++ {
		at := p - sh.first
		s := e.split(p)
		from, to := sh.portion(s)
		have := has.Within(from, to)
		var resumed numberset.Runs
		if len(e.base) > 0 {
			resumed = e.base.Within(from, to)
			have = dataset.UnionRanges(have, resumed)
		}
		got := sh.delivered.gain(s, resumed, have)
		wasDone := sh.done.Get(at)
		switch done := have.Covers(from, to); {
		case done:
			sh.taken.Set(at)
			sh.done.Set(at)
		case got > 0:
			sh.taken.Set(at)
			sh.done.Clear(at)
			e.keepPartial(sh, s, have)
			sh.returned = append(sh.returned, p)
		default:
			sh.taken.Clear(at)
			sh.done.Clear(at)
		}
		if wasDone != sh.done.Get(at) {
			e.settleSplit(p)
		}
		if _, was := before[p]; was || wasDone != sh.done.Get(at) {
			e.journal.chunkChanged(p)
		}
	}
	e.uncounted = true
}
