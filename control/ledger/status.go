package ledger

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/dataset"
)

// JobStatus is the state of a job.
type JobStatus struct {
	Job         string
	Failed      string // why the job failed; empty: it goes on
	Epoch       uint64 // the earliest that a rank is in
	MiniBatches uint64 // mini-batches of that epoch that ranks own
	Delivered   uint64 // delivered mini-batches of MiniBatches
	Redelivered uint64 // leases of pieces that had come back before
	Leases      int
	Bound       int       // drives that run at once; 0: no bound
	Running     []DriveID // drives that work for the job now, including workers of reach Any
	Workers     int       // workers of reach Any that work for the job now
	Allowed     int       // workers of reach Any that may make what holders could make; AllWorkers: no bound
	Enlisted    int       // workers of reach Any that are prepared for the job
	Orphans     int64     // rows of RowsLeft that no holder can make and that every worker of reach Any can read
	Unheld      int64     // rows of RowsLeft that lie on no drive and in no store: workers with such files make them
	LeftOut     int64     // rows of that epoch's data that no rank gets
	// ShortMiniBatches is how many mini-batches of that epoch's plan have fewer rows than a batch.
	ShortMiniBatches uint64
	RowsLeft         int64 // rows of that epoch that are neither delivered nor leased
	RowsDone         int64 // delivered rows of the epochs that have begun and that some rank has not left
	Ranks            []RankStatus
}

// RankStatus is the state of a rank.
type RankStatus struct {
	Rank      uint32
	Attached  bool // attached in this leader's term, and not detached since
	Epoch     uint64
	Owned     uint64 // mini-batches of the epoch
	Delivered uint64
	Leased    uint64 // mini-batches whose first rows are leased, and that are not delivered
	Leases    int
	Wanted    int    // pieces that the rank waits for
	Out       bool   // everything of the rank's epoch is delivered or leased
	Waiting   string // why the rank is granted no more now; empty: more can be granted, or Out is set

	Own     int    // workers that serve the rank alone and on which its splits can be granted
	Granted uint64 // pieces that were granted on these workers since the ledger was made
	// Share is the share of the rank's splits that all other workers make, see ShareSplits; -1: no share is set.
	Share float64
}

// Status describes a job. The error wraps ErrUnknown.
func (l *Ledger) Status(id string, now time.Time) (JobStatus, error) {
	j, err := l.findJob(id)
	if err != nil {
		return JobStatus{}, err
	}
	st := JobStatus{Job: id, Failed: j.failed, Redelivered: j.redelivered, Bound: j.Drives}
	first := uint64(math.MaxUint64)
	for _, r := range j.ranks {
		first = min(first, r.epoch)
		st.Leases += len(r.leases)
		st.Ranks = append(st.Ranks, l.rankStatus(j, r, now))
	}
	st.Epoch = first
	if e := j.epoch(first); e != nil {
		e.refreshPlacement()
		for i := range e.shares {
			st.MiniBatches += e.shares[i].owned.miniBatches
			st.Delivered += e.shares[i].delivered.miniBatches
		}
		st.LeftOut, st.ShortMiniBatches = e.leftOut, e.plan.ShortMiniBatches()
		e.refreshReadable(l.placementVersion)
		st.RowsLeft = sum(e.left)
		for p, n := range e.left {
			switch {
			case !e.readable[p]:
				st.Unheld += n
			case e.orphaned[p]:
				st.Orphans += n
			}
		}
	}
	for _, e := range j.epochs {
		st.RowsDone += e.rowsDelivered()
	}
	for d := range j.streams {
		st.Running = append(st.Running, d.id)
		if d.reach == Any {
			st.Workers++
		}
	}
	st.Allowed, st.Enlisted = j.allowedWorkers, len(j.enlisted)
	slices.SortFunc(st.Running, DriveID.compare)
	return st, nil
}

// EpochRows returns the rows of the mini-batches that the ranks of a job own in an epoch. It reports false if the epoch
// has not begun or all ranks have left it.
func (l *Ledger) EpochRows(id string, number uint64) (rows int64, live bool) {
	if j := l.job(id); j != nil {
		if e := j.epoch(number); e != nil {
			return e.rows, true
		}
	}
	return 0, false
}

// Rank describes a rank. The error wraps ErrUnknown.
func (l *Ledger) Rank(id string, number uint32, now time.Time) (RankStatus, error) {
	j, err := l.findJob(id)
	if err != nil {
		return RankStatus{}, err
	}
	if int64(number) >= int64(len(j.ranks)) {
		return RankStatus{}, fmt.Errorf("%w: job %s: rank %d of %d", ErrUnknown, id, number, len(j.ranks))
	}
	return l.rankStatus(j, j.ranks[number], now), nil
}

// Progress returns a rank's epoch and how many of the rank's mini-batches of that epoch are delivered. It costs less
// than Rank. The error wraps ErrUnknown.
func (l *Ledger) Progress(id string, number uint32) (epoch, delivered uint64, err error) {
	j, err := l.findJob(id)
	if err != nil {
		return 0, 0, err
	}
	if int64(number) >= int64(len(j.ranks)) {
		return 0, 0, fmt.Errorf("%w: job %s: rank %d of %d", ErrUnknown, id, number, len(j.ranks))
	}
	r := j.ranks[number]
	if e := j.epoch(r.epoch); e != nil {
		delivered = e.shares[number].delivered.miniBatches
	}
	return r.epoch, delivered, nil
}

func (l *Ledger) rankStatus(j *job, r *rank, now time.Time) RankStatus {
	st := RankStatus{Rank: r.number, Attached: r.attached, Epoch: r.epoch, Leases: len(r.leases), Wanted: r.want,
		Granted: r.grantedOwn, Share: -1}
	if r.counters != nil {
		st.Share = r.counters.Ratio()
	}
	j.refreshCrew(l.placementVersion)
	st.Own = len(j.own[r.number])
	e := j.epoch(r.epoch)
	if e == nil {
		st.Waiting = fmt.Sprintf("epoch %d was not begun", r.epoch)
		return st
	}
	sh := &e.shares[r.number]
	st.Owned, st.Delivered = sh.owned.miniBatches, sh.delivered.miniBatches
	var leased amount
	for _, le := range r.leases {
		s := e.split(le.Split)
		leased.gain(s, nil, sh.deliveredOf(e, s).Gaps(le.From, le.To))
	}
	st.Leased = leased.miniBatches
	st.Out = sh.delivered.fragments+leased.fragments == sh.owned.fragments
	st.Waiting = l.waitingReason(j, r, e, sh, st.Out, now)
	return st
}

// waitingReason returns in words why a rank is granted no further lease.
func (l *Ledger) waitingReason(j *job, r *rank, e *epoch, sh *share, out bool, now time.Time) string {
	switch {
	case j.failed != "":
		return "the job failed: " + j.failed
	case r.want > 0 && r.wanted != r.epoch && sh.complete():
		return fmt.Sprintf("epoch %d was not begun", r.wanted)
	case r.want > 0 && r.wanted != r.epoch:
		return fmt.Sprintf("%d mini-batches of epoch %d are not acknowledged",
			sh.owned.miniBatches-sh.delivered.miniBatches, r.epoch)
	case out:
		return ""
	case now.Before(l.config.GrantAfter):
		return "a new leader waits for the ranks to show what they hold"
	}
	e.refreshPlacement()
	return l.partnerReasons(j, r, e, sh, l.holderReasons(j, r, e, sh, now), now)
}

// holderReasons returns why a rank is granted no lease on a holder. It is empty if a holder can be granted.
func (l *Ledger) holderReasons(j *job, r *rank, e *epoch, sh *share, now time.Time) string {
	if j.Order == dataset.Deterministic {
		place, _ := e.nextSplit(sh)
		return l.driveReasons(j, r, e, e.holders[e.split(place).Partition], e.partitions[e.split(place).Partition], now)
	}
	var holders []int32
	for i, d := range e.drives {
		if d == nil || !j.employs(d) {
			continue
		}
		if _, ok := e.nextSplitOn(sh, i); ok {
			holders = append(holders, int32(i))
		}
	}
	name := ""
	if len(holders) == 0 {
		if place, ok := e.nextSplit(sh); ok {
			name = e.partitions[e.split(place).Partition]
		}
	}
	return l.driveReasons(j, r, e, holders, name, now)
}

// partnerReasons adds to the reasons of holders why no worker of reach Any is granted. It is empty if a holder or a
// worker can be granted.
func (l *Ledger) partnerReasons(j *job, r *rank, e *epoch, sh *share, holders string, now time.Time) string {
	if holders == "" || len(j.enlisted) == 0 {
		return holders
	}
	j.refreshCrew(l.placementVersion)
	turn := l.turnOf(j, r, now)
	e.refreshReadable(l.placementVersion)
	_, readable := e.nextForPartner(sh, &e.readability, j.partnersHelp(turn))
	able, free := 0, 0
	j.partners(r, turn, func(d *drive, all bool) bool {
		if _, ok := e.nextForPartner(sh, l.readableBy(e, d), all); !ok {
			return true
		}
		able++
		if d.freeStreams() > 0 && !r.avoidsDrive(d, now) {
			free++
		}
		return true
	})
	switch {
	case free > 0:
		return ""
	case able == 0 && !readable:
		return holders
	case able == 0:
		return fmt.Sprintf("%s; no worker without data takes work (%d are prepared)", holders, len(j.enlisted))
	}
	return fmt.Sprintf("%s; the workers without data that serve the rank (%d) are busy", holders, able)
}

// driveReasons returns, for each of the drives that hold pending numbers, why it is not granted. It is empty if one
// of the drives can be granted.
func (l *Ledger) driveReasons(j *job, r *rank, e *epoch, holders []int32, partition string, now time.Time) string {
	if len(holders) == 0 && j.Makers != 0 {
		return fmt.Sprintf("no drive that may make splits of the job holds partition %s", partition)
	}
	if len(holders) == 0 {
		return fmt.Sprintf("no drive holds partition %s", partition)
	}
	var busy, bad []string
	bound, excluded := false, false
	for _, i := range holders {
		switch d := e.drives[i]; {
		case d.reach == Source:
		case !j.employs(d):
			excluded = true
		case d.state == driveDead:
			bad = append(bad, fmt.Sprintf("drive %v is dead (%s)", d.id, d.why))
		case d.state == driveUnknown:
			bad = append(bad, fmt.Sprintf("drive %v has not appeared", d.id))
		case d.draining:
			bad = append(bad, fmt.Sprintf("drive %v is draining", d.id))
		case r.avoidsDrive(d, now):
			bad = append(bad, fmt.Sprintf("drive %v failed this rank just now", d.id))
		case d.freeStreams() == 0:
			busy = append(busy, fmt.Sprintf("drive %v is busy with %d of %d splits", d.id, d.busy, d.streams))
		case j.Drives > 0 && j.activeDrives() >= j.Drives && j.streams[d] == 0:
			bound = true
		default:
			return ""
		}
	}
	if bound {
		return fmt.Sprintf("%d of at most %d drives run", j.activeDrives(), j.Drives)
	}
	const most = 4 // drives that are named
	switch {
	case len(busy)+len(bad) > 0:
	case excluded:
		return "no drive that holds the partitions may make splits of the job"
	default:
		return "the partitions can be read, and no drive holds them"
	}
	all := append(busy, bad...)
	if len(all) > most {
		all = append(all[:most], quantity.Of(len(all)-most, "more drive"))
	}
	return strings.Join(all, ", ")
}

// Missing lists the partitions with pending rows of a job that nothing can make now: no drive on which leases can be
// granted holds them, and no worker of reach Any makes them. It returns at most most names, as in Epoch.Partitions,
// and the total number.
func (l *Ledger) Missing(id string, most int) (names []string, total int) {
	j := l.job(id)
	if j == nil {
		return nil, 0
	}
	j.refreshCrew(l.placementVersion)
	for _, e := range j.epochs {
		e.refreshPlacement()
		for p, rows := range e.left {
			if rows == 0 || slices.ContainsFunc(e.holders[p], func(i int32) bool {
				return e.drives[i] != nil && e.drives[i].grantable() && j.employs(e.drives[i])
			}) || l.workersRead(e, p) {
				continue
			}
			if total++; len(names) < most {
				names = append(names, e.partitions[p])
			}
		}
	}
	return names, total
}

// workersRead reports whether workers of reach Any can read a partition for every rank that has mini-batches of the
// epoch left: a worker that serves one rank alone does not make the other ranks' splits.
func (l *Ledger) workersRead(e *epoch, partition int) bool {
	reads := func(d *drive) bool { return l.readableBy(e, d).readable[partition] }
	if slices.ContainsFunc(e.job.shared, reads) || slices.ContainsFunc(e.job.withFiles, reads) {
		return true
	}
	return !slices.ContainsFunc(e.shares, func(sh share) bool {
		return !sh.complete() && !slices.ContainsFunc(e.job.own[sh.rank.number], reads)
	})
}

// DriveStatus is the state of a drive.
type DriveStatus struct {
	Drive   DriveID
	Streams int
	Busy    int    // streams in use
	Leases  int    // including fetched leases
	State   string // ready, draining, unknown, dead: why, set aside: why

	Failures uint64    // Failures counts leases that came back because a worker of reach Any failed.
	Aside    time.Time // until when a worker is set aside; zero: it is not set aside
}

// Drives describes all drives, by name.
func (l *Ledger) Drives() []DriveStatus {
	out := make([]DriveStatus, 0, len(l.drives))
	for _, d := range l.drives {
		st := DriveStatus{Drive: d.id, Streams: d.streams, Busy: d.busy, Leases: len(d.leases), State: "ready",
			Failures: d.failures}
		switch {
		case d.aside:
			st.State, st.Aside = d.troubleWords(), d.asideUntil
		case d.state == driveDead:
			st.State = "dead: " + d.why
		case d.state == driveUnknown:
			st.State = "unknown"
		case d.draining:
			st.State = "draining"
		}
		out = append(out, st)
	}
	return out
}
