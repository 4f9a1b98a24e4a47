package lifecycle

import (
	"bytes"
	"slices"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/record"
)

// rankSet holds the ranks of a job: what waits for their launchers, which runs they belong to, and which of them
// announced that they will report their end.
type rankSet struct {
	*life
	ranks []Rank
}

// Rank returns a rank of the job, or nil if the job has no rank of that number.
func (s *rankSet) Rank(number uint32) *Rank {
	if int64(number) >= int64(len(s.ranks)) {
		return nil
	}
	return &s.ranks[number]
}

// Granted records that the ledger granted a lease to a rank.
func (s *rankSet) Granted(g ledger.Grant) {
	if r := s.Rank(g.Rank); r != nil {
		r.offers = append(r.offers, offer{Grant: g})
		s.machine.emit(WakeRank{Job: s.ID, Rank: g.Rank})
	}
}

// Revoked records that the ledger took back a lease of a rank.
func (s *rankSet) Revoked(v ledger.Revocation) {
	if r := s.Rank(v.Rank); r != nil {
		r.revoked = append(r.revoked, v.Lease)
		r.offers = slices.DeleteFunc(r.offers, func(o offer) bool { return o.ID == v.Lease })
		s.machine.emit(WakeRank{Job: s.ID, Rank: v.Rank})
	}
}

// wakeAllRanks wakes the calls of every rank.
func (s *rankSet) wakeAllRanks() {
	for i := range s.ranks {
		s.machine.emit(WakeRank{Job: s.ID, Rank: uint32(i)})
	}
}

// AttachedLast reports whether a run is the one that attached to a rank last. A run without a name is another one each
// time.
func (s *rankSet) AttachedLast(rank uint32, run Run) bool {
	r := s.Rank(rank)
	return r != nil && run != (Run{}) && r.run == run
}

// ForeignRun finds a rank that another run than the caller's attached last and of which something was acknowledged,
// the caller's own rank first. The caller's model would miss what that run acknowledged, on any rank. ForeignRun
// finds no rank for a caller that named no run, or that attached the rank before. progress returns how far a rank
// is.
func (s *rankSet) ForeignRun(rank uint32, caller Run, progress func(rank uint32) (epoch, delivered uint64, err error)) (
	consumed uint32, found bool, err error,
) {
	if own := s.Rank(rank); caller == (Run{}) || own == nil || own.run == caller {
		return rank, false, nil
	}
	begun := func(n uint32) (bool, error) {
		epoch, delivered, err := progress(n)
		return err == nil && (epoch > s.FirstEpoch || delivered > 0), err
	}
	if found, err := begun(rank); found || err != nil {
		return rank, found, err
	}
	for i := range s.ranks {
		if s.ranks[i].run == caller {
			continue
		}
		if found, err := begun(uint32(i)); found || err != nil {
			return uint32(i), found, err
		}
	}
	return rank, false, nil
}

// Announces records whether a rank's launcher will report that the rank is through. A call that the launcher made
// before its announcement may arrive after it and changes nothing.
func (s *rankSet) Announces(rank uint32, end bool) {
	if r := &s.ranks[rank]; !r.through {
		s.noteAnnouncement(r, end)
	}
}

// noteAnnouncement records whether a rank's launcher will report its end. The stored state has to follow.
func (s *rankSet) noteAnnouncement(r *Rank, end bool) {
	s.unwritten = s.unwritten || r.announcesEnd != end || r.announcementAssumed
	r.announcesEnd, r.announcementAssumed = end, false
}

// Through records that a rank is through: its trainer will not go back to an earlier checkpoint. The caller must
// store the state before it answers, even if the launcher reported this before, because an earlier write may have
// failed.
func (s *rankSet) Through(rank uint32) {
	s.noteAnnouncement(&s.ranks[rank], false)
	s.ranks[rank].through = true
}

// The times for which a job stays after its last acknowledgement, for ranks whose launchers announced that they
// would report when they are through: a trainer that dies before it writes its last checkpoint returns within this
// time. The time is shorter for an assumed announcement, of a rank that has not called this leader.
const (
	maxStay        = 10 * time.Minute
	maxAssumedStay = 30 * time.Second
)

// mayReturn reports whether a rank may still come back to an earlier checkpoint, or attach for the first time: the
// launcher of a job that resumes from a token of all mini-batches learns from its attachment that none is left.
func (s *rankSet) mayReturn(deliveredAt, now time.Time) bool {
	if s.state.Unattached && now.Sub(deliveredAt) < maxAssumedStay {
		return true
	}
	return slices.ContainsFunc(s.ranks, func(r Rank) bool {
		most := maxStay
		if r.announcementAssumed {
			most = maxAssumedStay
		}
		return r.announcesEnd && now.Sub(deliveredAt) < most
	})
}

// describeEnds lists which ranks announced their end, a character a rank, as record.State has it.
func (s *rankSet) describeEnds() string {
	b := make([]byte, len(s.ranks))
	for i, r := range s.ranks {
		switch {
		case r.announcementAssumed:
			b[i] = '?'
		case r.announcesEnd:
			b[i] = '1'
		default:
			b[i] = '0'
		}
	}
	return string(b)
}

// restoreEnds is the inverse of describeEnds. An announcement that no leader has stored is assumed.
func (s *rankSet) restoreEnds() {
	stays := s.state.Stays
	for i := range s.ranks {
		r := &s.ranks[i]
		r.announcesEnd, r.announcementAssumed = true, true
		if i < len(stays) && stays[i] != '?' {
			r.announcesEnd, r.announcementAssumed = stays[i] == '1', false
		}
	}
}

// describeRuns lists the ranks' runs, as record.State has it; nil when no rank is known to belong to one.
func (s *rankSet) describeRuns() []byte {
	b := make([]byte, 0, len(s.ranks)*record.RunBytes)
	for i := range s.ranks {
		b = append(b, s.ranks[i].run[:]...)
	}
	if len(bytes.Trim(b, "\x00")) == 0 {
		return nil
	}
	return b
}

// restoreRuns is the inverse of describeRuns.
func (s *rankSet) restoreRuns() {
	for i := range s.ranks {
		if from := i * record.RunBytes; from+record.RunBytes <= len(s.state.Runs) {
			s.ranks[i].run = Run(s.state.Runs[from : from+record.RunBytes])
		}
	}
}
