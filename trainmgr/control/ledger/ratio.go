package ledger

import (
	"math"
	"time"
)

// ratio shares whole splits out between workers of reach Any and holders: FastFlow's ratio, kept by two counters for
// each rank. A ratio inside a split would have the same pages decoded twice.
type ratio struct {
	share float64 // of splits that workers of reach Any make
}

// ShareSplits has workers of reach Any make a share of a job's splits, from 0 to 1, and holders the rest, whatever
// AllowWorkers says; at every moment each rank is at most one split away from it. While one side can make nothing, the
// other side makes all. Unless the share is a number from 0 to 1, the holders come first again. The error wraps
// ErrUnknown.
func (l *Ledger) ShareSplits(id string, share float64, now time.Time) error {
	j, err := l.findJob(id)
	if err != nil {
		return err
	}
	j.ratio, j.crewVersion = nil, 0
	if share >= 0 && share <= 1 {
		j.ratio = &ratio{share}
	}
	for _, r := range j.ranks {
		r.splitsHeld, r.splitsAny = 0, 0
	}
	l.schedule(now)
	return nil
}

// GrantedSplits returns how many pieces of a job were granted on holders and on workers of reach Any since the ledger
// was made. The error wraps ErrUnknown.
func (l *Ledger) GrantedSplits(id string) (held, anyReach uint64, err error) {
	j, err := l.findJob(id)
	if err != nil {
		return 0, 0, err
	}
	return j.grantedHeld, j.grantedAny, nil
}

// countGrant counts a piece that a rank is granted on a drive.
func (j *job) countGrant(r *rank, d *drive) {
	if d.reach == Any {
		r.splitsAny++
		j.grantedAny++
		return
	}
	r.splitsHeld++
	j.grantedHeld++
}

// partnersTurn reports whether a rank's next split may be one of a worker of reach Any by the ratio, or no holder can
// make any split of the rank.
func (j *job) partnersTurn(r *rank) bool {
	next := float64(r.splitsHeld + r.splitsAny + 1)
	return float64(r.splitsAny) < math.Ceil(j.ratio.share*next) || !j.holdersCan(r)
}

// holdersTurn is partnersTurn for holders.
func (j *job) holdersTurn(r *rank, version uint64) bool {
	if j.ratio == nil {
		return true
	}
	next := float64(r.splitsHeld + r.splitsAny + 1)
	if float64(r.splitsHeld) < math.Ceil((1-j.ratio.share)*next) {
		return true
	}
	j.refreshCrew(version)
	able := false
	j.partners(r, func(*drive) bool { able = true; return false })
	return !able
}

// holdersCan reports whether a holder that can be granted has pending numbers of a rank.
func (j *job) holdersCan(r *rank) bool {
	e := j.epoch(r.epoch)
	sh := &e.shares[r.number]
	for i, d := range e.drives {
		if d == nil || !d.grantable() || !j.employs(d) {
			continue
		}
		if _, ok := e.nextSplitOn(sh, i); ok {
			return true
		}
	}
	return false
}
