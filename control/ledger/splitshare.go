package ledger

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/offload"
)

// turn is the side that may make a rank's next split.
type turn uint8

// The turns.
const (
	eitherTurn turn = iota // holders come first, as AllowWorkers says
	ownTurn                // the workers that serve the rank alone
	othersTurn             // every other worker
)

// ShareSplits divides the splits of a rank between the workers that serve the rank alone, which are the trainer's
// own CPUs, and all other workers. A split is never cut for it. share is the share of the splits that the other
// workers make, from 0 to 1. Two counters keep the share: at every moment the granted splits differ from the share
// by less than one split. While one side can make nothing, the other side makes all splits. If share is not a number
// from 0 to 1, the splits are no longer divided and holders come first again. The error wraps ErrUnknown.
func (l *Ledger) ShareSplits(id string, number uint32, share float64, now time.Time) error {
	j, err := l.findJob(id)
	if err != nil {
		return err
	}
	if int64(number) >= int64(len(j.ranks)) {
		return fmt.Errorf("%w: job %s: rank %d of %d", ErrUnknown, id, number, len(j.ranks))
	}
	r := j.ranks[number]
	switch {
	case !(share >= 0 && share <= 1):
		if r.counters == nil {
			return nil
		}
		r.counters = nil
	case r.counters == nil:
		r.counters = offload.NewCounters(share)
	case r.counters.Ratio() == share:
		return nil
	default:
		r.counters.SetRatio(share)
	}
	l.schedule(now)
	return nil
}

// GrantedSplits counts the pieces of a job that were granted since the ledger was made.
type GrantedSplits struct {
	Held uint64 // on holders
	Any  uint64 // on workers of reach Any
	Own  uint64 // Own is the part of Any on workers that serve one rank alone.
}

// GrantedSplits returns how many pieces of a job were granted. The error wraps ErrUnknown.
func (l *Ledger) GrantedSplits(id string) (GrantedSplits, error) {
	j, err := l.findJob(id)
	if err != nil {
		return GrantedSplits{}, err
	}
	sum := GrantedSplits{Held: j.grantedHeld}
	for _, r := range j.ranks {
		sum.Own += r.grantedOwn
	}
	sum.Any = j.grantedShared + sum.Own
	return sum, nil
}

// countGrant counts a piece that a rank is granted on a drive. If the side whose turn it was could not make the
// piece, countGrant restarts the counters: the side does not make up later for the splits that it missed.
func (j *job) countGrant(r *rank, d *drive) {
	side := offload.Remote
	switch {
	case d.serves != nil:
		side = offload.Local
		r.grantedOwn++
	case d.reach == Any:
		j.grantedShared++
	default:
		j.grantedHeld++
	}
	switch {
	case r.counters == nil:
	case r.counters.Next() == side:
		r.counters.Count(side)
	default:
		r.counters.Restart()
	}
}

// turnOf returns the side that may make a rank's next split.
func (l *Ledger) turnOf(j *job, r *rank, now time.Time) turn {
	switch {
	case r.counters == nil:
		return eitherTurn
	case !l.ownCan(j, r, now):
		return othersTurn
	case r.counters.Next() == offload.Local || !l.othersCan(j, r, now):
		return ownTurn
	}
	return othersTurn
}

// ownCan reports whether a worker that serves the rank alone can make the rank's next split, now or when the worker
// has a free stream.
func (l *Ledger) ownCan(j *job, r *rank, now time.Time) bool {
	j.refreshCrew(l.placementVersion)
	for _, d := range j.own[r.number] {
		if r.avoidsDrive(d, now) {
			continue
		}
		e := j.epoch(r.epoch)
		e.refreshPlacement()
		if _, ok := e.nextForPartner(&e.shares[r.number], l.readableBy(e, d), true); ok {
			return true
		}
	}
	return false
}

// othersCan reports whether a worker that does not serve the rank alone can make the rank's next split, now or when
// the worker has a free stream.
func (l *Ledger) othersCan(j *job, r *rank, now time.Time) bool {
	e := j.epoch(r.epoch)
	e.refreshPlacement()
	sh := &e.shares[r.number]
	able := func(d *drive) bool { return d != nil && d.grantable() && j.employs(d) && !r.avoidsDrive(d, now) }
	if j.Order == dataset.Deterministic {
		place, ok := e.nextSplit(sh)
		if !ok {
			return false
		}
		for _, i := range e.holders[e.split(place).Partition] {
			if able(e.drives[i]) {
				return true
			}
		}
	} else {
		for i, d := range e.drives {
			if !able(d) {
				continue
			}
			if _, ok := e.nextSplitOn(sh, i); ok {
				return true
			}
		}
	}
	can := false
	j.partners(r, othersTurn, func(d *drive, all bool) bool {
		_, can = e.nextForPartner(sh, l.readableBy(e, d), all)
		return !can
	})
	return can
}
