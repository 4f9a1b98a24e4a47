package ledger

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/control/ledger/numberset"
)

// verify checks the invariants that hold after every event.
func (l *Ledger) verify() error {
	busy := map[*drive]int{}
	for id, le := range l.leases {
		if id != le.ID || !slices.Contains(le.rank.leases, le) {
			return fmt.Errorf("lease %s is not in its rank's list", showID(id))
		}
		if le.drive != nil && !slices.Contains(le.drive.leases, le) {
			return fmt.Errorf("lease %s is not in its drive's list", showID(id))
		}
		if (le.state == leaseWorking) == le.Fetched || leaseStates.Final(le.state) {
			return fmt.Errorf("lease %s is %s, fetched %v", showID(id), le.state, le.Fetched)
		}
		if !le.Fetched {
			busy[le.drive]++
		}
		if le.epoch.shares[le.rank.number].deliveredOf(le.epoch, le.epoch.split(le.Split)).Covers(le.From, le.To) {
			return fmt.Errorf("lease %s is out and all delivered", showID(id))
		}
	}
	for _, d := range l.drives {
		if d.busy != busy[d] {
			return fmt.Errorf("drive %v counts %d streams taken, %d are", d.id, d.busy, busy[d])
		}
		if d.busy > d.streams && d.state == driveReady {
			return fmt.Errorf("drive %v has %d of %d streams taken", d.id, d.busy, d.streams)
		}
	}
	for _, j := range l.jobs {
		workers := 0
		for d := range j.streams {
			if d.reach == Any {
				workers++
			}
		}
		if workers != j.activeWorkers {
			return fmt.Errorf("job %s counts %d active workers, there are %d", j.ID, j.activeWorkers, workers)
		}
		for _, e := range j.epochs {
			if err := e.verify(); err != nil {
				return fmt.Errorf("job %s epoch %d: %w", j.ID, e.number, err)
			}
		}
	}
	return nil
}

// countRowsDelivered counts the rows that rowsDelivered returns, split by split.
func (e *epoch) countRowsDelivered() (rows int64) {
	for i := range e.shares {
		sh := &e.shares[i]
		for p := sh.first; p < sh.last; p++ {
			s := e.split(p)
			for _, delivered := range sh.deliveredOf(e, s) {
				for _, own := range e.base.Gaps(delivered.From, delivered.To) {
					rows += e.rowsOf(s, own.From, own.To)
				}
			}
		}
	}
	return rows
}

func (e *epoch) verify() error {
	if !e.uncounted {
		left := make([]int64, len(e.left))
		e.countRowsLeft(left)
		if !slices.Equal(left, e.left) {
			return fmt.Errorf("rows left are %v, counted %v", left, e.left)
		}
		if got, want := e.rowsDelivered(), e.countRowsDelivered(); got != want {
			return fmt.Errorf("%d rows are delivered, of the splits %d", got, want)
		}
	}
	for i := range e.shares {
		sh := &e.shares[i]
		if !slices.IsSorted(sh.returned) {
			return fmt.Errorf("rank %d: returned %v", i, sh.returned)
		}
		var delivered, owned amount
		for p := sh.first; p < sh.last; p++ {
			s := e.split(p)
			from, to := sh.portion(s)
			resumed := e.base.Within(from, to)
			owned.gain(s, resumed, numberset.Runs(nil).Append(from, to))
			delivered.gain(s, resumed, sh.deliveredOf(e, s))
			pending := len(sh.pendingOf(e, s)) > 0
			at := p - sh.first
			if sh.done.Get(at) && !sh.taken.Get(at) {
				return fmt.Errorf("rank %d: split %d is done and fresh", i, p)
			}
			if want := sh.taken.Get(at) && pending; want != slices.Contains(sh.returned, p) {
				return fmt.Errorf("rank %d: split %d: taken %v, pending %v, returned %v", i, p, sh.taken.Get(at),
					pending, !want)
			}
			if sh.done.Get(at) != sh.deliveredOf(e, s).Covers(from, to) {
				return fmt.Errorf("rank %d: split %d: done %v, has %v of [%d,%d)", i, p, sh.done.Get(at),
					sh.deliveredOf(e, s),
					from, to)
			}
		}
		if delivered != sh.delivered || owned != sh.owned {
			return fmt.Errorf("rank %d counts %v of %v delivered, it is %v of %v", i, sh.delivered, sh.owned, delivered,
				owned)
		}
		has := e.deliveredIn(nil, sh)
		if whole := e.fragmentsOf(e.miniBatchesOf(has)); !slices.Equal(whole, has) {
			return fmt.Errorf("rank %d: of the fragments %v, the whole mini-batches have %v", i, has, whole)
		}
		for k := 1; k < len(sh.rank.leases); k++ {
			a, b := sh.rank.leases[k-1], sh.rank.leases[k]
			if a.Epoch > b.Epoch || a.Epoch == b.Epoch && a.To > b.From {
				return fmt.Errorf("rank %d: leases %s and %s overlap", i, showID(a.ID), showID(b.ID))
			}
		}
	}
	for p := range e.splits {
		done := true
		for i := range e.shares {
			if sh := &e.shares[i]; p >= sh.first && p < sh.last && !sh.done.Get(p-sh.first) {
				done = false
			}
		}
		if done != e.done.Get(p) {
			return fmt.Errorf("split %d: done %v, its ranks say %v", p, e.done.Get(p), done)
		}
	}
	return nil
}
