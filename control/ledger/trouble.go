package ledger

import (
	"fmt"
	"time"
)

// Bounds for setting aside a worker of reach Any that fails.
const (
	failuresAside = 3 // leases in a row that came back because the worker failed
	firstAside    = 10 * time.Second
	longestAside  = 5 * time.Minute
)

// trouble counts the failures of a worker of reach Any. A holder has no trouble: a holder that fails is not set
// aside, since no other drive may hold its partitions.
type trouble struct {
	failures   uint64 // leases that came back because the worker failed
	inARow     int    // failures since the last lease that succeeded
	timesAside int    // times that the worker was set aside since the last lease that succeeded
	aside      bool   // no lease is granted on the worker
	asideUntil time.Time
	asideWhy   string
}

// noteFailure counts a lease that came back because its worker failed. A worker that fails again and again is set aside
// for a time that doubles. Nothing is lost: the leases that come back are granted again elsewhere.
func (l *Ledger) noteFailure(d *drive, why string, now time.Time) {
	if d.reach != Any {
		return
	}
	d.failures++
	d.inARow++
	if d.inARow < failuresAside || d.aside {
		return
	}
	d.inARow = 0
	d.aside, d.asideWhy = true, why
	d.asideUntil = now.Add(min(longestAside, firstAside<<min(d.timesAside, 8)))
	d.timesAside++
	l.placementVersion++
}

// noteSuccess forgets the failures in a row of a worker that made all mini-batches of a lease.
func (d *drive) noteSuccess() { d.inARow, d.timesAside = 0, 0 }

// recall ends the exclusion of the workers whose time aside is over.
func (l *Ledger) recall(now time.Time) {
	for _, d := range l.drives {
		if d.aside && !now.Before(d.asideUntil) {
			d.aside, d.asideWhy = false, ""
			l.placementVersion++
		}
	}
}

// doubt is the report of a worker of reach Any that a split's data are bad. A worker that reports wrongly must not
// end a job, so the split is granted on a holder or another worker too.
type doubt struct {
	worker DriveID
	times  int
}

// mostDoubts is the number of reports of bad data for one split by one worker that end the job, if no other worker
// has tried to make the split meanwhile.
const mostDoubts = 3

// splitOf names a split of a job.
type splitOf struct {
	epoch uint64
	place int
}

// believes reports whether the report that a lease's data are bad ends the job. The report does not end the job
// until two workers, or a holder, have reported bad data for the split, or one worker has repeated its report.
func (l *Ledger) believes(le *lease) bool {
	d, j := le.drive, le.job
	if d == nil || d.reach != Any {
		return true
	}
	at := splitOf{le.Epoch, le.Split}
	before, known := j.doubts[at]
	if known && (before.worker != d.id || before.times+1 >= mostDoubts) {
		return true
	}
	if j.doubts == nil {
		j.doubts = map[splitOf]doubt{}
	}
	j.doubts[at] = doubt{d.id, before.times + 1}
	return false
}

// troubleWords returns in words why a worker is set aside.
func (d *drive) troubleWords() string {
	return fmt.Sprintf("set aside after %d leases in a row failed on it (%s)", failuresAside, d.asideWhy)
}
