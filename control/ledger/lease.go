package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/sdk/dataset"
)

// Lease is the right of a rank to take a piece of a split from a drive, until a deadline.
type Lease struct {
	ID       uint64 // unique among all leases that can still be named
	Epoch    uint64
	Split    int    // place in the plan
	From, To uint64 // fragments
	Drive    DriveID
	Fetched  bool // every fragment is at the launcher: no stream is open for it
}

// Grant is a new lease.
type Grant struct {
	Job  string
	Rank uint32
	Lease
	MiniBatch uint64 // number of the mini-batch of the fragment From; those behind it are of the mini-batches behind it
	Again     bool   // some of the split had been granted before and came back
}

// Revocation informs a rank that a lease is gone. Mini-batches of it that were fetched may still be delivered and
// acknowledged; the rest is granted again.
type Revocation struct {
	Job   string
	Rank  uint32
	Lease uint64
	Why   string
}

// Progress is the state of a rank's work that every call carries: the leases that the rank works on, and whether the
// rank can go on.
type Progress struct {
	Held    []uint64 // extended
	Fetched []uint64 // extended too; every fragment is at the launcher, and no drive is needed any more
	Blocked bool     // the input queue is full: the rank fetches nothing now
}

// Reason is why a lease is given back.
type Reason uint8

// The reasons.
const (
	Stopped    Reason = iota // the trainer stops
	NodeFailed               // another drive, or a later time, may do better
	DataFailed               // the data are bad on every worker: the job fails
)

// lease is a lease with its state. A lease ends when all its numbers are delivered, or when it comes back.
type lease struct {
	Lease
	job      *job
	rank     *rank
	epoch    *epoch
	drive    *drive // nil: removed, after everything was fetched
	state    leaseState
	deadline time.Time
}

// same reports whether a rank means this lease, whether or not the rank has fetched all of it.
func (le *lease) same(a Lease) bool {
	a.Fetched = le.Fetched
	return le.Lease == a
}

func byLeaseID(a, b *lease) int { return cmp.Compare(a.ID, b.ID) }

func byNumber(a, b *lease) int {
	if c := cmp.Compare(a.Epoch, b.Epoch); c != 0 {
		return c
	}
	return cmp.Compare(a.From, b.From)
}

// newID returns an id that no lease has. The low bits of the fence distinguish it from the ids of earlier leaders.
func (l *Ledger) newID() uint64 {
	for {
		l.counter++
		id := l.config.Fence<<32 | l.counter&(1<<32-1)
		if _, taken := l.leases[id]; !taken && id != 0 {
			return id
		}
	}
}

// startLease adds a lease to the lists of its rank, drive and split.
func (l *Ledger) startLease(le *lease) {
	l.checkLease(le)
	l.leases[le.ID] = le
	r, d := le.rank, le.drive
	i, _ := slices.BinarySearchFunc(r.leases, le, byNumber)
	r.leases = slices.Insert(r.leases, i, le)
	d.leases = append(d.leases, le)
	le.state = leaseFetched
	if !le.Fetched {
		le.state = leaseWorking
		l.countStream(le, 1)
	}
	s := le.epoch.split(le.Split)
	sh := &le.epoch.shares[r.number]
	sh.taken.Set(le.Split - sh.first)
	sh.updateReturned(le.epoch, s)
}

// countStream adds (1) or removes (-1) the stream of a lease in the counts of its drive, rank and job.
func (l *Ledger) countStream(le *lease, n int) {
	j, d := le.job, le.drive
	d.busy += n
	le.rank.streams += n
	before := j.streams[d]
	if j.streams[d] += n; j.streams[d] == 0 {
		delete(j.streams, d)
	}
	switch {
	case d.reach != Any:
	case before == 0:
		j.activeWorkers++
	case before+n == 0:
		j.activeWorkers--
	}
}

// reclaim ends a lease whose numbers are not all delivered. The numbers that are not delivered are pending again.
func (l *Ledger) reclaim(le *lease) {
	e, sh := le.epoch, &le.epoch.shares[le.rank.number]
	s := e.split(le.Split)
	for _, r := range sh.deliveredOf(e, s).Gaps(le.From, le.To) {
		e.left[s.Partition] += e.rowsOf(s, r.From, r.To)
	}
	l.transition(le, onReturned)
	l.effects.Back = append(l.effects.Back, le.Lease)
	sh.again[le.Split] = struct{}{}
	sh.updateReturned(e, s)
}

// revoke reclaims a lease, and emits the revocation for the rank.
func (l *Ledger) revoke(le *lease, why string) {
	l.reclaim(le)
	l.effects.Revoked = append(l.effects.Revoked, Revocation{le.job.ID, le.rank.number, le.ID, why})
}

// leaseOfRank finds a lease of a rank, or returns nil.
func (l *Ledger) leaseOfRank(r *rank, id uint64) *lease {
	if le := l.leases[id]; le != nil && le.rank == r {
		return le
	}
	return nil
}

// Leased reports whether a rank holds a lease: it was granted, and has neither ended nor come back.
func (l *Ledger) Leased(id string, rank uint32, lease uint64) bool {
	le := l.leases[lease]
	return le != nil && le.job.ID == id && le.rank.number == rank
}

// Find returns a lease that a rank holds. It reports false where the rank does not hold it.
func (l *Ledger) Find(id string, rank uint32, lease uint64) (Lease, bool) {
	if !l.Leased(id, rank, lease) {
		return Lease{}, false
	}
	return l.leases[lease].Lease, true
}

// Want records that the rank waits for n pieces of the epoch, in place of the pieces that it wanted before. The
// epoch is the rank's, or the next one, to which the rank goes on when it has acknowledged its whole share. Another
// epoch is ErrArgument: the rank has to attach with a token.
func (l *Ledger) Want(id string, s Session, epoch uint64, n int, now time.Time) error {
	j, r, err := l.findConsumer(id, s)
	if err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("%w: job %s: rank %d wants %d pieces", ErrArgument, id, r.number, n)
	}
	if epoch != r.epoch && epoch != r.epoch+1 {
		return fmt.Errorf("%w: job %s: rank %d is in epoch %d and wants %d: attach with a token to go there",
			ErrArgument, id, r.number, r.epoch, epoch)
	}
	r.want, r.wanted = n, epoch
	l.advanceRank(j, r)
	l.schedule(now)
	return nil
}

// Hold extends leases. It returns the leases of the progress that the rank does not hold or no longer holds.
func (l *Ledger) Hold(id string, s Session, progress Progress, now time.Time) (gone []uint64, err error) {
	_, r, err := l.findConsumer(id, s)
	if err != nil {
		return nil, err
	}
	extend := func(ids []uint64, fetched bool) {
		for _, id := range ids {
			le := l.leaseOfRank(r, id)
			if le == nil {
				gone = append(gone, id)
				continue
			}
			le.deadline = now.Add(l.config.LeaseTTL)
			if fetched {
				l.transition(le, onFetched)
			}
		}
	}
	extend(progress.Held, false)
	extend(progress.Fetched, true)
	switch {
	case !progress.Blocked:
		r.blocked = time.Time{}
	case r.blocked.IsZero():
		r.blocked = now
	}
	l.schedule(now)
	slices.Sort(gone)
	return slices.Compact(gone), nil
}

// Adopt takes over leases that an earlier leader granted. It returns the leases that it refuses because their drive
// is dead or has no free stream, or because their numbers are not the rank's, all delivered, or leased already.
// Adopt of an adopted lease extends it. A drive that no PutDrive has named yet is expected to appear. Leave out
// leases of which every number is acknowledged.
func (l *Ledger) Adopt(id string, s Session, leases []Lease, now time.Time) (gone []uint64, err error) {
	j, r, err := l.findConsumer(id, s)
	if err != nil {
		return nil, err
	}
	for _, a := range leases {
		l.followRank(j, r, a.Epoch)
		if le := l.leaseOfRank(r, a.ID); le != nil && le.same(a) {
			le.deadline = now.Add(l.config.LeaseTTL)
		} else if !l.adoptLease(j, r, a, now) {
			gone = append(gone, a.ID)
		}
	}
	l.schedule(now)
	return gone, nil
}

// followRank moves a rank to the epoch that the rank names, if that epoch is the next one: an earlier leader had
// moved the rank and died before it stored the change.
func (l *Ledger) followRank(j *job, r *rank, epoch uint64) {
	if epoch == r.epoch+1 && epoch != 0 {
		r.want, r.wanted = 0, epoch
		l.advanceRank(j, r)
	}
}

func (l *Ledger) adoptLease(j *job, r *rank, a Lease, now time.Time) bool {
	e := j.epoch(a.Epoch)
	if _, taken := l.leases[a.ID]; taken || e == nil || j.failed != "" || a.Epoch != r.epoch || a.From >= a.To ||
		a.ID == 0 {
		return false
	}
	s, err := e.plan.Split(a.Split)
	if err != nil {
		return false
	}
	sh := &e.shares[r.number]
	from, to := sh.portion(s)
	if a.From < from || a.To > to || len(r.leasesWithin(e, a.From, a.To)) > 0 {
		return false
	}
	missing := sh.deliveredOf(e, s).Gaps(a.From, a.To)
	if len(missing) == 0 {
		return false
	}
	d := l.drive(a.Drive)
	if d == nil {
		d = l.addDrive(a.Drive)
		d.state, d.since = driveUnknown, now
	}
	if !a.Fetched && (d.state == driveDead || d.state == driveReady && d.freeStreams() == 0) {
		return false
	}
	for _, m := range missing {
		e.left[s.Partition] -= e.rowsOf(s, m.From, m.To)
	}
	l.startLease(&lease{Lease: a, job: j, rank: r, epoch: e, drive: d, deadline: now.Add(l.config.LeaseTTL)})
	if !a.Fetched {
		j.addRunning(d)
	}
	return true
}

// Acknowledge makes mini-batches of the rank delivered; a repeated acknowledgement changes nothing. The epoch is the
// rank's, an earlier one, or the next one if the rank's own epoch is complete. If the next epoch was not begun,
// Effects.Needed names it and the error wraps ErrUnknown. Either all runs are acknowledged or, with an error, none:
// mini-batches that are not the rank's are ErrArgument. The rank need not hold a lease of them any more. Answer the
// caller when the records that Flush then returns are durable.
func (l *Ledger) Acknowledge(id string, s Session, epoch uint64, runs []dataset.Range, now time.Time) error {
	j, r, err := l.findConsumer(id, s)
	if err != nil {
		return err
	}
	l.followRank(j, r, epoch)
	e := j.epoch(epoch)
	switch {
	case epoch < r.epoch && e == nil:
		return nil // delivered and forgotten
	case e == nil:
		return fmt.Errorf("%w: job %s: epoch %d was not begun", ErrUnknown, id, epoch)
	case epoch > r.epoch:
		return fmt.Errorf("%w: job %s: rank %d acknowledges in epoch %d and is in %d", ErrArgument, id, r.number, epoch,
			r.epoch)
	}
	sh := &e.shares[r.number]
	for _, run := range runs {
		if own := sh.miniBatches; run.From >= run.To || run.From < own.From || run.To > own.To {
			return fmt.Errorf("%w: job %s: rank %d acknowledges [%d, %d), it has [%d, %d)", ErrArgument, id, r.number,
				run.From, run.To, own.From, own.To)
		}
	}
	if err := e.checkRoom(len(runs)); err != nil {
		return fmt.Errorf("job %s: rank %d acknowledges: %w", id, r.number, err)
	}
	sorted := slices.SortedFunc(slices.Values(runs), func(a, b dataset.Range) int { return cmp.Compare(a.From, b.From) })
	numbers, fresh := e.fragmentsOf(dataset.UnionRanges(sorted, nil)), uint64(0)
	for len(numbers) > 0 {
		s := e.split(e.placeFor(r, numbers[0].From))
		var here numberset.Runs
		here, numbers = numbers.Cut(s.End())
		fresh += l.deliver(e, sh, s, here)
	}
	if fresh == 0 {
		return nil
	}
	r.blocked = time.Time{}
	if sh.complete() {
		l.announceComplete(e)
		l.advanceRank(j, r)
	}
	l.schedule(now)
	return nil
}

// placeFor finds the split of a number. It searches the rank's leases first.
func (e *epoch) placeFor(r *rank, number uint64) int {
	if out := r.leasesWithin(e, number, number+1); len(out) > 0 {
		return out[0].Split
	}
	return e.placeOf(number)
}

// Detach revokes all leases of a rank whose launcher is gone, and withdraws the rank's want. The rank's session
// remains valid: a launcher that calls with it learns which leases are gone.
func (l *Ledger) Detach(id string, number uint32, why string, now time.Time) error {
	j, err := l.findJob(id)
	if err != nil {
		return err
	}
	if int64(number) >= int64(len(j.ranks)) {
		return fmt.Errorf("%w: job %s: rank %d of %d", ErrUnknown, id, number, len(j.ranks))
	}
	r := j.ranks[number]
	for len(r.leases) > 0 {
		l.revoke(r.leases[0], why)
	}
	r.want, r.blocked, r.attached = 0, time.Time{}, false
	l.schedule(now)
	return nil
}

// Release gives leases back; leases that the rank does not hold are passed over. With NodeFailed the rank is not
// granted that drive for Config.Avoid, and a worker of reach Any that fails again and again is set aside. With
// DataFailed the job fails, unless only one worker of reach Any has reported bad data for the split, and fewer than
// three times.
func (l *Ledger) Release(id string, s Session, leases []uint64, reason Reason, why string, now time.Time) error {
	j, r, err := l.findConsumer(id, s)
	if err != nil {
		return err
	}
	named, believed := false, false
	for _, id := range leases {
		le := l.leaseOfRank(r, id)
		if le == nil {
			continue
		}
		verdict := reason
		if reason == DataFailed {
			named = true
			if l.believes(le) {
				believed = true
			} else {
				verdict = NodeFailed
			}
		}
		l.reclaim(le)
		if verdict == NodeFailed && le.drive != nil {
			r.avoid[le.drive] = now.Add(l.config.Avoid)
			l.noteFailure(le.drive, why, now)
		}
	}
	if reason == DataFailed && (believed || !named) {
		l.failJob(j, why)
	}
	l.schedule(now)
	return nil
}
