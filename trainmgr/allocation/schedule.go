package allocation

import (
	"cmp"
	"slices"
)

// Schedule decides which split starts next, and on which worker. It is a pure machine: its owner reports each split
// that has ended, and asks for the split to start next.
//
// At most limit workers run at once, each with at most its own number of splits at a time. In free order a running
// worker goes on with the splits that it holds until none is left; then the worker with the most rows left takes its
// place. In plan order splits start strictly in the plan's order, so that the split whose mini-batches the trainer
// waits for always runs.
//
// Where neighbouring splits share a mini-batch, what was made of it waits for the neighbour. LimitRuns bounds how much
// waits in free order: the splits that have started lie in few runs, and only the ends of a run wait.
//
// Where the limit is lowered, those workers go on that have the most rows left. Each of the others ends the splits that
// it runs and starts no other, until it is idle: then it waits for its turn.
//
// Workers belong to groups, and each group has a limit of its own, for owners that decide which group makes the next
// split. A schedule begins with group 0.
type Schedule struct {
	planOrder    bool
	maxRuns      int   // In free order, the started splits lie in no more runs than this; 0: any number.
	runs         int   // Started splits that follow one another in plan order are one run.
	limits       []int // workers at once, by group
	workers      []scheduledWorker
	splits       []scheduledSplit
	firstPending int // no split before it is pending
	firstUndone  int // every split before it is done
	pending      int
	running      int
}

// scheduledWorker is a schedule's state of one worker.
type scheduledWorker struct {
	group        int
	suspended    bool
	ending       bool // it ends its splits, because more workers run than the limit allows
	concurrency  int  // splits at once
	running      int
	pendingRows  int64 // The worker holds pending splits with this number of rows.
	firstPending int   // index into splits; no split before it is pending
	splits       []int // splits that the worker holds, in plan order
}

// scheduledSplit is a schedule's state of one split.
type scheduledSplit struct {
	rows    int64
	holders []int // workers that hold the split
	state   splitState
	worker  int // the worker that runs the split, or -1
}

type splitState uint8

const (
	splitPending splitState = iota
	splitRunning
	splitDone
)

// NewSchedule returns a schedule without splits. At most limit workers run at once, at least one. Worker w runs at most
// concurrency[w] splits at once, at least one.
func NewSchedule(planOrder bool, limit int, concurrency []int) *Schedule {
	s := &Schedule{planOrder: planOrder}
	s.AddGroup(limit, concurrency)
	return s
}

// AddGroup adds workers with a limit of their own, like NewSchedule, and returns the index of their group. The
// workers get the indices after those of the existing workers.
func (s *Schedule) AddGroup(limit int, concurrency []int) (group int) {
	group = len(s.limits)
	s.limits = append(s.limits, max(limit, 1))
	for _, n := range concurrency {
		s.workers = append(s.workers, scheduledWorker{group: group, concurrency: max(n, 1)})
	}
	return group
}

// LimitRuns bounds the runs of started splits, running or done, in a schedule in free order: splits that follow one
// another in plan order are one run. 0 means any number. A worker whose next split would begin one run too many waits.
// The first pending split may always start: it follows the first run. If several workers could take another's place,
// the one whose next split comes first does.
func (s *Schedule) LimitRuns(runs int) { s.maxRuns = runs }

// Add appends a pending split in plan order and returns its index. holders are the indices of the workers that hold it.
func (s *Schedule) Add(rows int64, holders []int) (split int) {
	split = len(s.splits)
	s.splits = append(s.splits, scheduledSplit{rows: rows, holders: holders, worker: -1})
	for _, w := range holders {
		s.workers[w].splits = append(s.workers[w].splits, split)
		s.workers[w].pendingRows += rows
	}
	s.pending++
	return split
}

// Start picks a pending split and a worker of group 0 and marks the split as running. ok is false if no split may start
// now: none is pending, or a running split has to end first.
func (s *Schedule) Start() (split, worker int, ok bool) { return s.StartIn(0) }

// StartIn does the same as Start for the workers of a group.
func (s *Schedule) StartIn(group int) (split, worker int, ok bool) {
	if s.pending == 0 {
		return 0, 0, false
	}
	if s.planOrder {
		return s.startInPlanOrder(group)
	}
	for w := range s.workers {
		if running := s.workers[w].running; running > 0 && running < s.workers[w].concurrency && s.usable(w, group) {
			if next := s.nextPending(w); next >= 0 && s.fits(next) {
				return s.markRunning(next, w)
			}
		}
	}
	if s.Active(group) >= s.limits[group] {
		return 0, 0, false
	}
	best := -1
	for w := range s.workers {
		candidate := &s.workers[w]
		if s.usable(w, group) && candidate.running == 0 && candidate.pendingRows > 0 && s.fits(s.nextPending(w)) &&
			(best < 0 || s.startsBefore(w, best)) {
			best = w
		}
	}
	if best < 0 {
		return 0, 0, false
	}
	return s.markRunning(s.nextPending(best), best)
}

// fits reports whether a pending split may start as far as LimitRuns goes.
func (s *Schedule) fits(split int) bool {
	return s.maxRuns == 0 || s.runs+s.addedRuns(split) <= s.maxRuns || split == s.skipStarted()
}

// addedRuns returns by how many the runs become more if a pending split starts: by one, less one for each neighbour
// that has started.
func (s *Schedule) addedRuns(split int) int {
	added := 1
	for _, neighbour := range []int{split - 1, split + 1} {
		if neighbour >= 0 && neighbour < len(s.splits) && s.splits[neighbour].state != splitPending {
			added--
		}
	}
	return added
}

// startsBefore reports whether, of two idle workers with pending splits, the first is to start: it has more rows left,
// or with LimitRuns its next split comes first.
func (s *Schedule) startsBefore(a, b int) bool {
	if s.maxRuns > 0 {
		return s.nextPending(a) < s.nextPending(b)
	}
	return s.workers[a].pendingRows > s.workers[b].pendingRows
}

// skipStarted returns the first pending split. There must be one.
func (s *Schedule) skipStarted() int {
	for s.splits[s.firstPending].state != splitPending {
		s.firstPending++
	}
	return s.firstPending
}

// undone returns the first split that is not done. There must be one.
func (s *Schedule) undone() int {
	for s.splits[s.firstUndone].state == splitDone {
		s.firstUndone++
	}
	return s.firstUndone
}

// startInPlanOrder starts the first pending split if a worker of the group that holds it is free.
func (s *Schedule) startInPlanOrder(group int) (split, worker int, ok bool) {
	first := s.skipStarted()
	worker = s.freeHolder(group, s.splits[first].holders)
	if worker < 0 {
		return 0, 0, false
	}
	return s.markRunning(first, worker)
}

// End marks a running split as done.
func (s *Schedule) End(split int) {
	ended := &s.splits[split]
	ended.state = splitDone
	s.running--
	worker := &s.workers[ended.worker]
	if worker.running--; worker.running == 0 {
		worker.ending = false
	}
}

// Return marks a running split as pending: its worker did not make it.
func (s *Schedule) Return(split int) {
	returned := &s.splits[split]
	s.End(split)
	returned.state, returned.worker = splitPending, -1
	for _, w := range returned.holders {
		holder := &s.workers[w]
		holder.pendingRows += returned.rows
		at, _ := slices.BinarySearch(holder.splits, split)
		holder.firstPending = min(holder.firstPending, at)
	}
	s.firstPending = min(s.firstPending, split)
	s.firstUndone = min(s.firstUndone, split)
	s.runs -= s.addedRuns(split)
	s.pending++
}

// AddWorker adds a worker to a group after the splits were added. splits are the indices of the splits that the
// worker holds, ascending.
func (s *Schedule) AddWorker(group, concurrency int, splits []int) (worker int) {
	worker = len(s.workers)
	added := scheduledWorker{group: group, concurrency: max(concurrency, 1), splits: splits}
	for _, split := range splits {
		held := &s.splits[split]
		held.holders = append(slices.Clip(held.holders), worker)
		if held.state == splitPending {
			added.pendingRows += held.rows
		}
	}
	s.workers = append(s.workers, added)
	return worker
}

// SetLimit changes how many workers of a group run at once, at least one.
func (s *Schedule) SetLimit(group, limit int) {
	s.limits[group] = max(limit, 1)
	var active []int
	for w := range s.workers {
		if s.workers[w].group == group && s.workers[w].running > 0 {
			active = append(active, w)
		}
	}
	slices.SortStableFunc(active, func(a, b int) int {
		return cmp.Compare(s.workers[b].pendingRows, s.workers[a].pendingRows)
	})
	for i, w := range active {
		s.workers[w].ending = i >= s.limits[group]
	}
}

// Idle reports whether a worker runs no split, and would start none now: it has none to start, or as many workers of
// its group run as may.
func (s *Schedule) Idle(worker int) bool {
	w := &s.workers[worker]
	return w.running == 0 && (w.pendingRows == 0 || s.Active(w.group) >= s.limits[w.group])
}

// Holders returns how many workers of a group run a split or hold a pending one.
func (s *Schedule) Holders(group int) int {
	holders := 0
	for w := range s.workers {
		if s.workers[w].group == group && s.Holds(w) {
			holders++
		}
	}
	return holders
}

// Holds reports whether a worker runs a split or holds a pending one.
func (s *Schedule) Holds(worker int) bool {
	return s.workers[worker].running > 0 || s.workers[worker].pendingRows > 0
}

// Running returns how many splits run.
func (s *Schedule) Running() int { return s.running }

// Suspend keeps a worker from starting splits until Resume. Its running splits go on.
func (s *Schedule) Suspend(worker int) { s.workers[worker].suspended = true }

// Resume lets a suspended worker start splits again.
func (s *Schedule) Resume(worker int) { s.workers[worker].suspended = false }

// CanServe reports whether a worker of the group could start a pending split, now or when a running split has ended.
// In plan order, only the first pending split counts.
func (s *Schedule) CanServe(group int) bool {
	if s.pending == 0 {
		return false
	}
	if !s.planOrder {
		return slices.ContainsFunc(s.workers, func(w scheduledWorker) bool {
			return w.group == group && !w.suspended && w.pendingRows > 0
		})
	}
	return slices.ContainsFunc(s.splits[s.skipStarted()].holders, func(w int) bool {
		return s.workers[w].group == group && !s.workers[w].suspended
	})
}

// Stalled reports whether, in plan order or with LimitRuns, the first pending split precedes every running split. In
// plan order no running split can then bring the mini-batch that the trainer waits for next; with LimitRuns the splits
// that may still start may all be after it. A split that was returned can stall the schedule.
func (s *Schedule) Stalled() bool {
	if !s.planOrder && s.maxRuns == 0 || s.pending == 0 {
		return false
	}
	return s.splits[s.undone()].state == splitPending
}

// usable reports whether a worker belongs to the group and may start splits.
func (s *Schedule) usable(worker, group int) bool {
	w := &s.workers[worker]
	return w.group == group && !w.suspended && !w.ending
}

// Pending returns how many splits have not started.
func (s *Schedule) Pending() int { return s.pending }

// Active returns how many workers of a group run a split.
func (s *Schedule) Active(group int) int {
	active := 0
	for w := range s.workers {
		if s.workers[w].group == group && s.workers[w].running > 0 {
			active++
		}
	}
	return active
}

// freeHolder returns the holder in the group that runs the fewest splits and may start another split, or -1. An idle
// holder may start a split if fewer workers than the group's limit run.
func (s *Schedule) freeHolder(group int, holders []int) int {
	best := -1
	for _, w := range holders {
		running := s.workers[w].running
		if !s.usable(w, group) || running >= s.workers[w].concurrency ||
			(running == 0 && s.Active(group) >= s.limits[group]) {
			continue
		}
		if best < 0 || running < s.workers[best].running {
			best = w
		}
	}
	return best
}

// nextPending returns the first pending split that the worker holds, or -1.
func (s *Schedule) nextPending(worker int) int {
	w := &s.workers[worker]
	for ; w.firstPending < len(w.splits); w.firstPending++ {
		if split := w.splits[w.firstPending]; s.splits[split].state == splitPending {
			return split
		}
	}
	return -1
}

// markRunning notes that the worker runs the split, and subtracts the split's rows from the pending rows of every
// holder.
func (s *Schedule) markRunning(split, worker int) (int, int, bool) {
	s.runs += s.addedRuns(split)
	started := &s.splits[split]
	started.state, started.worker = splitRunning, worker
	s.workers[worker].running++
	for _, w := range started.holders {
		s.workers[w].pendingRows -= started.rows
	}
	s.pending--
	s.running++
	return split, worker, true
}
