package control

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/control/record"
)

// happen applies an event to the machines and carries out its effects.
func (l *leader) happen(event func(now time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	event(now)
	l.settleLocked(now)
}

// settleLocked carries out the effects that the machines returned since the last call, until no further effect follows.
// Every event is followed by a call of settleLocked under the same lock, so that no call sees an event without its
// effects.
func (l *leader) settleLocked(now time.Time) {
	for {
		effects := l.mu.machine.Ready(now)
		for _, e := range effects {
			l.carryOutLocked(e, now)
		}
		ofNodes := l.mu.upkeep.Ready(now)
		for _, e := range ofNodes {
			l.carryOutUpkeepLocked(e, now)
		}
		if len(effects)+len(ofNodes) == 0 {
			return
		}
	}
}

// carryOutLocked carries out an effect of the machine.
func (l *leader) carryOutLocked(e machine.Effect, now time.Time) {
	switch e := e.(type) {
	case machine.Life:
		l.carryOutLifeLocked(e.Effect, now)
	case machine.Answered:
		l.mu.waiting[e.Call] <- e // The channel has room for the one answer.
		delete(l.mu.waiting, e.Call)
	case machine.Revoked:
		l.logger.Debug("lease revoked", "job", e.Job, "rank", e.Rank, "lease", e.Lease, "why", e.Why)
	case machine.Adopted:
		l.logger.Info("leases adopted", "job", e.Job, "rank", e.Rank, "adopted", e.Adopted, "refused", e.Refused)
	case machine.Returned:
		l.mu.upkeep.LeaseReturned(e.Drive.Node, e.ID, now)
	case machine.Delivered:
		l.mu.jobs[e.Job].poke()
	case machine.Detached:
		if e.Err != nil {
			l.logger.Error("detach a rank", "job", e.Job, "rank", e.Rank, "error", e.Err)
		}
		l.logger.Info("rank detached", "job", e.Job, "rank", e.Rank, "why", e.Why, "last_call", e.Last)
	default:
		l.logger.Error("an effect that the leader does not know", "what", fmt.Sprintf("%T", e))
	}
}

// carryOutLifeLocked carries out an effect of a job's life.
func (l *leader) carryOutLifeLocked(e lifecycle.Effect, now time.Time) {
	switch e := e.(type) {
	case lifecycle.Moved: // The calls that watch the job wake.
		l.logger.Info("job", "job", e.Job, "from", string(e.From), "to", string(e.To), "why", e.Why)
		j := l.mu.jobs[e.Job]
		j.changed.Broadcast()
		j.poke()
	case lifecycle.Refused:
		l.logger.Error("a transition that cannot be", "job", e.Job, "error", e.Err)
	case lifecycle.EndJob:
		l.concludeJobLocked(l.mu.jobs[e.Job], e.Phase, now)
	case lifecycle.FindPartitions:
		l.mu.jobs[e.Job].findPartitions(l.mu.fleet, l.o.MaxSplits)
	case lifecycle.DropEdition:
		digest := l.mu.jobs[e.Job].editions[e.Number].Digest
		l.mu.jobs[e.Job].dropEdition(e.Number)
		l.mu.upkeep.Dropped(digest)
	case lifecycle.EditionBegun:
		g := l.mu.jobs[e.Job].editions[e.Edition.Number]
		g.Edition.Edition = e.Edition
		l.logger.Info("a further edition", "job", e.Job, "edition", g.Number, "epoch", g.First,
			"partitions", len(g.data.Manifest.Partitions), "digest", g.Digest.String()[:12])
	default:
		l.logger.Error("an effect that the leader does not know", "what", fmt.Sprintf("%T", e))
	}
}

// concludeJobLocked keeps the conclusion of a job that has ended, and removes the job from the ledger. The job's
// goroutine stores the conclusion and makes the nodes forget the job.
func (l *leader) concludeJobLocked(j *job, phase record.Phase, now time.Time) {
	status := l.statusLocked(j, now)
	for _, r := range status.Ranks {
		r.Attached = false
	}
	c := lifecycle.Conclusion{Redelivered: status.Redelivered}
	c.Status, _ = proto.Marshal(status) // the message has plain fields only and cannot fail
	if phase == record.Abandoned {
		var err error
		if c.Token, err = lastToken(l.mu.machine.Ledger, j.ID); err != nil {
			l.logger.Warn("of an abandoned job no token is kept", "job", j.ID, "error", err)
		}
	}
	j.Conclude(c)
	if err := l.mu.machine.RemoveFromLedger(j.Job, now); err != nil {
		l.logger.Error("remove an ended job from the ledger", "job", j.ID, "error", err)
	}
}

// maxLastToken is the largest token that is kept of an abandoned job, in bytes.
const maxLastToken = 256 << 10

// lastToken returns the token of the acknowledged mini-batches of an abandoned job, from which a later trainer can
// continue.
func lastToken(l *ledger.Ledger, job string) ([]byte, error) {
	t, err := l.Token(job)
	if err != nil {
		return nil, err
	}
	b, err := t.MarshalBinary()
	if err == nil && len(b) > maxLastToken {
		return nil, fmt.Errorf("it has %d bytes, at most %d", len(b), maxLastToken)
	}
	return b, err
}

// dropEdition forgets the data of an edition that all ranks have left, but for the names of its partitions.
func (j *job) dropEdition(number int) {
	for _, p := range j.editions[number].data.Manifest.Partitions {
		j.formerly[p.Name] = struct{}{}
	}
	delete(j.editions, number)
}
