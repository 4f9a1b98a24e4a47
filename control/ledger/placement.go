package ledger

import (
	"fmt"
	"slices"
	"sort"
)

// placement lists which drives hold an epoch's splits. The list of a drive's splits is made when it is first needed;
// one pass over the plan makes all missing lists.
type placement struct {
	byName    map[string]int32
	drives    []*drive // nil: the drive was removed
	index     map[*drive]int
	lists     [][]uint32 // by drive: the places of the splits that the drive holds, ascending
	stale     []bool     // by drive: the drive's list has to be made
	anyStale  bool
	holders   [][]int32 // by partition: drives
	left      []int64   // by partition: rows that are neither delivered nor leased
	uncounted bool      // left has to be counted again
}

func newPlacement(partitions []string) placement {
	p := placement{
		byName: make(map[string]int32, len(partitions)), index: make(map[*drive]int),
		holders: make([][]int32, len(partitions)), left: make([]int64, len(partitions)), uncounted: true,
	}
	for i, name := range partitions {
		p.byName[name] = int32(i)
	}
	return p
}

// updateHolder records which partitions a drive holds now; the drive may hold none. A worker of reach Any is not a
// holder, even if it has files of its own machine.
func (e *epoch) updateHolder(d *drive) {
	i, known := e.index[d]
	var has []int32
	for name := range d.partitions {
		if p, ok := e.byName[name]; ok && d.reach != Any {
			has = append(has, p)
		}
	}
	if !known {
		if len(has) == 0 {
			return
		}
		i = len(e.drives)
		e.index[d] = i
		e.drives = append(e.drives, d)
		e.lists = append(e.lists, nil)
		e.stale = append(e.stale, false)
		for s := range e.shares {
			e.shares[s].next = append(e.shares[s].next, 0)
		}
	}
	for p := range e.holders {
		e.holders[p] = slices.DeleteFunc(e.holders[p], func(o int32) bool { return o == int32(i) })
	}
	for _, p := range has {
		e.holders[p] = append(e.holders[p], int32(i))
	}
	e.stale[i], e.anyStale = true, true
}

// removeHolder forgets a drive that was removed. Its index is not used again.
func (e *epoch) removeHolder(d *drive) {
	i, known := e.index[d]
	if !known {
		return
	}
	for p := range e.holders {
		e.holders[p] = slices.DeleteFunc(e.holders[p], func(o int32) bool { return o == int32(i) })
	}
	delete(e.index, d)
	e.drives[i], e.lists[i], e.stale[i] = nil, nil, false
}

// refreshPlacement makes the lists and counts that are missing.
func (e *epoch) refreshPlacement() {
	if e.anyStale {
		e.anyStale = false
		splits := make([]int, len(e.holders)) // of each partition
		for s := range e.plan.All() {
			splits[s.Partition]++
		}
		for i, stale := range e.stale {
			if stale && !e.job.employs(e.drives[i]) {
				e.lists[i], e.stale[i] = nil, false // the drive makes no split of the job
				continue
			}
			if !stale {
				continue
			}
			n := 0
			for p, holders := range e.holders {
				if slices.Contains(holders, int32(i)) {
					n += splits[p]
				}
			}
			e.lists[i] = make([]uint32, 0, n)
		}
		for s := range e.plan.All() {
			for _, i := range e.holders[s.Partition] {
				if e.stale[i] {
					e.lists[i] = append(e.lists[i], uint32(s.Position))
				}
			}
		}
		for i, stale := range e.stale {
			if stale {
				e.stale[i] = false
				for s := range e.shares {
					e.shares[s].next[i] = 0
				}
			}
		}
	}
	if e.uncounted {
		e.uncounted = false
		e.countRowsLeft(e.left)
	}
}

// countRowsLeft fills left with the rows of each partition that are neither delivered nor leased.
func (e *epoch) countRowsLeft(left []int64) {
	clear(left)
	for i := range e.shares {
		sh := &e.shares[i]
		for p := sh.first; p < sh.last; p++ {
			if p = sh.first + sh.done.Next(p-sh.first, sh.last-sh.first, false); p == sh.last {
				break
			}
			s := e.split(p)
			if from, to := sh.portion(s); !sh.taken.Get(p-sh.first) && len(e.base) == 0 {
				left[s.Partition] += e.rowsOf(s, from, to)
				continue
			}
			for _, r := range sh.pendingOf(e, s) {
				left[s.Partition] += e.rowsOf(s, r.From, r.To)
			}
		}
	}
}

// rowsLeft counts the rows of an epoch that a drive could still be granted.
func (e *epoch) rowsLeft(d *drive) int64 {
	if _, known := e.index[d]; !known || d.reach == Any {
		return 0
	}
	e.refreshPlacement()
	var n int64
	for name := range d.partitions {
		if p, ok := e.byName[name]; ok {
			n += e.left[p]
		}
	}
	return n
}

// rowsLeft counts the rows of a job's live epochs that a drive could still be granted.
func (j *job) rowsLeft(d *drive) int64 {
	var n int64
	for _, e := range j.epochs {
		n += e.rowsLeft(d)
	}
	return n
}

// holds reports whether drive i holds a split.
func (e *epoch) holds(i, place int) bool {
	return slices.Contains(e.holders[e.split(place).Partition], int32(i))
}

// nextSplitOn returns the first split of a share that drive i holds and that has pending numbers. Splits with
// returned leases go before fresh splits.
func (e *epoch) nextSplitOn(sh *share, i int) (place int, ok bool) {
	if !e.job.employs(e.drives[i]) {
		return 0, false
	}
	for _, p := range sh.returned {
		if e.holds(i, p) {
			return p, true
		}
	}
	list := e.lists[i]
	at := int(sh.next[i])
	if at == 0 {
		at = sort.Search(len(list), func(k int) bool { return int(list[k]) >= sh.first })
	}
	for at < len(list) && int(list[at]) < sh.last {
		if p := int(list[at]); !sh.taken.Get(p - sh.first) {
			sh.next[i] = int32(at)
			return p, true
		}
		at++
	}
	sh.next[i] = int32(at)
	return 0, false
}

// nextSplit returns the first split of a share that has pending numbers.
func (e *epoch) nextSplit(sh *share) (place int, ok bool) {
	if sh.cursor < sh.last {
		sh.cursor = sh.first + sh.taken.Next(sh.cursor-sh.first, sh.last-sh.first, false)
	}
	if len(sh.returned) > 0 && sh.returned[0] < sh.cursor {
		return sh.returned[0], true
	}
	return sh.cursor, sh.cursor < sh.last
}

// distinct checks that no two partitions have the same name.
func distinct(partitions []string) error {
	seen := make(map[string]struct{}, len(partitions))
	for _, name := range partitions {
		if _, twice := seen[name]; twice {
			return fmt.Errorf("%w: two partitions are called %q", ErrArgument, name)
		}
		seen[name] = struct{}{}
	}
	return nil
}
