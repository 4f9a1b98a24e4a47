package trainmgr

// schedule decides which split starts next on which drive. It is a pure machine: no goroutines, no clock; its owner
// tells it what ended and asks what to start.
//
// At most width drives run at once, each at most its streams' number of splits. In free order a running drive goes
// on with its own splits until none is left, then the drive with the most rows left takes its place. In plan order
// splits start strictly in the plan's order, so that the one whose mini-batches are due always runs.
type schedule struct {
	ordered bool
	width   int
	drives  []scheduledDrive
	splits  []scheduledSplit
	first   int // no split before it is pending
	pending int
	running int
}

type scheduledDrive struct {
	streams int
	running int
	rows    int64 // of pending splits that it holds
	next    int   // free order: index into holds of the first that may be pending
	holds   []int // splits, in plan order
}

type scheduledSplit struct {
	rows   int64
	drives []int // that hold it
	state  splitState
	drive  int // that runs it
}

type splitState uint8

const (
	splitPending splitState = iota
	splitRunning
	splitDone
)

// newSchedule begins with every split pending; streams[d] is what drive d takes at once, rows and holders describe
// the splits in plan order.
func newSchedule(ordered bool, width int, streams []int) *schedule {
	s := &schedule{ordered: ordered, width: max(width, 1), drives: make([]scheduledDrive, len(streams))}
	for i, n := range streams {
		s.drives[i].streams = max(n, 1)
	}
	return s
}

// add appends a split in plan order and returns its index.
func (s *schedule) add(rows int64, holders []int) int {
	i := len(s.splits)
	s.splits = append(s.splits, scheduledSplit{rows: rows, drives: holders, drive: -1})
	for _, d := range holders {
		s.drives[d].holds = append(s.drives[d].holds, i)
		s.drives[d].rows += rows
	}
	s.pending++
	return i
}

// start picks a split and a drive and marks them running; ok is false when nothing may start now.
func (s *schedule) start() (split, drive int, ok bool) {
	if s.pending == 0 {
		return 0, 0, false
	}
	if s.ordered {
		for s.splits[s.first].state != splitPending {
			s.first++
		}
		d := s.driveFor(s.splits[s.first].drives)
		if d < 0 {
			return 0, 0, false
		}
		return s.run(s.first, d)
	}
	for d := range s.drives {
		if s.drives[d].running > 0 && s.drives[d].running < s.drives[d].streams {
			if i := s.pendingOf(d); i >= 0 {
				return s.run(i, d)
			}
		}
	}
	if s.active() >= s.width {
		return 0, 0, false
	}
	best := -1
	for d := range s.drives {
		if s.drives[d].running == 0 && s.drives[d].rows > 0 && (best < 0 || s.drives[d].rows > s.drives[best].rows) {
			best = d
		}
	}
	if best < 0 {
		return 0, 0, false
	}
	return s.run(s.pendingOf(best), best)
}

// end marks a running split as done.
func (s *schedule) end(split int) {
	sp := &s.splits[split]
	sp.state = splitDone
	s.drives[sp.drive].running--
	s.running--
}

// done reports that every split has ended.
func (s *schedule) done() bool { return s.pending == 0 && s.running == 0 }

// active counts the drives that run.
func (s *schedule) active() int {
	n := 0
	for d := range s.drives {
		if s.drives[d].running > 0 {
			n++
		}
	}
	return n
}

// driveFor picks the holder to run a split in plan order: one that runs and has a stream free, else an idle one.
func (s *schedule) driveFor(holders []int) int {
	best := -1
	for _, d := range holders {
		r := s.drives[d].running
		if r >= s.drives[d].streams || (r == 0 && s.active() >= s.width) {
			continue
		}
		if best < 0 || r < s.drives[best].running {
			best = d
		}
	}
	return best
}

// pendingOf returns the drive's first pending split, or -1.
func (s *schedule) pendingOf(d int) int {
	dr := &s.drives[d]
	for ; dr.next < len(dr.holds); dr.next++ {
		if i := dr.holds[dr.next]; s.splits[i].state == splitPending {
			return i
		}
	}
	return -1
}

func (s *schedule) run(split, drive int) (int, int, bool) {
	sp := &s.splits[split]
	sp.state, sp.drive = splitRunning, drive
	s.drives[drive].running++
	for _, d := range sp.drives {
		s.drives[d].rows -= sp.rows
	}
	s.pending--
	s.running++
	return split, drive, true
}
