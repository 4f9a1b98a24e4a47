package allocation

// Schedule decides which split starts next on which worker. It is a pure machine: its owner reports each split that has
// ended and asks which split to start.
//
// At most limit workers run at once, each with at most its own number of splits at a time. In free order a running
// worker goes on with the splits that it holds until none is left; then the worker with the most rows left takes its
// place. In plan order splits start strictly in the plan's order, so that the split whose mini-batches the trainer
// waits for always runs.
type Schedule struct {
	planOrder    bool
	limit        int // workers at once
	workers      []scheduledWorker
	splits       []scheduledSplit
	firstPending int // no split before it is pending
	pending      int
	running      int
}

// scheduledWorker is what a schedule knows of one worker.
type scheduledWorker struct {
	concurrency  int // splits at once
	running      int
	pendingRows  int64 // of the pending splits that the worker holds
	firstPending int   // index into splits; no split before it is pending
	splits       []int // that the worker holds, in plan order
}

// scheduledSplit is what a schedule knows of one split.
type scheduledSplit struct {
	rows    int64
	holders []int // workers that hold the split
	state   splitState
	worker  int // that runs the split, or -1
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
	s := &Schedule{planOrder: planOrder, limit: max(limit, 1), workers: make([]scheduledWorker, len(concurrency))}
	for w, n := range concurrency {
		s.workers[w].concurrency = max(n, 1)
	}
	return s
}

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

// Start picks a pending split and a worker and marks the split as running. ok is false if no split may start now: none
// is pending, or a running split has to end first.
func (s *Schedule) Start() (split, worker int, ok bool) {
	if s.pending == 0 {
		return 0, 0, false
	}
	if s.planOrder {
		return s.startInPlanOrder()
	}
	for w := range s.workers {
		if running := s.workers[w].running; running > 0 && running < s.workers[w].concurrency {
			if next := s.nextPending(w); next >= 0 {
				return s.markRunning(next, w)
			}
		}
	}
	if s.activeWorkers() >= s.limit {
		return 0, 0, false
	}
	best := -1
	for w := range s.workers {
		candidate := &s.workers[w]
		if candidate.running == 0 && candidate.pendingRows > 0 &&
			(best < 0 || candidate.pendingRows > s.workers[best].pendingRows) {
			best = w
		}
	}
	if best < 0 {
		return 0, 0, false
	}
	return s.markRunning(s.nextPending(best), best)
}

// startInPlanOrder starts the first pending split if a worker that holds it is free.
func (s *Schedule) startInPlanOrder() (split, worker int, ok bool) {
	for s.splits[s.firstPending].state != splitPending {
		s.firstPending++
	}
	worker = s.freeHolder(s.splits[s.firstPending].holders)
	if worker < 0 {
		return 0, 0, false
	}
	return s.markRunning(s.firstPending, worker)
}

// End marks a running split as done.
func (s *Schedule) End(split int) {
	ended := &s.splits[split]
	ended.state = splitDone
	s.workers[ended.worker].running--
	s.running--
}

// Pending returns how many splits have not started.
func (s *Schedule) Pending() int { return s.pending }

// activeWorkers counts the workers that run a split.
func (s *Schedule) activeWorkers() int {
	active := 0
	for w := range s.workers {
		if s.workers[w].running > 0 {
			active++
		}
	}
	return active
}

// freeHolder picks the holder that runs the fewest splits and may start another one, or returns -1. An idle holder may
// start if fewer workers than the limit run.
func (s *Schedule) freeHolder(holders []int) int {
	best := -1
	for _, w := range holders {
		running := s.workers[w].running
		if running >= s.workers[w].concurrency || (running == 0 && s.activeWorkers() >= s.limit) {
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

// markRunning notes that the worker runs the split. No other holder has the split's rows pending any more.
func (s *Schedule) markRunning(split, worker int) (int, int, bool) {
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
