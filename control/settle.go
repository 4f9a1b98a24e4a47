package control

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/record"
)

// settle carries out the effects that the ledger and the jobs' lives returned since the last call, until no further
// effect follows. Every event is followed by a call of settle under the same lock, so that no call sees an event
// without its effects. l.mu is held.
func (l *leader) settle(now time.Time) {
	for follows := true; follows; {
		follows = l.settleLedger(now) || l.settleLives(now)
	}
}

// settleLedger passes the ledger's effects to the jobs. It reports whether there were effects. l.mu is held.
func (l *leader) settleLedger(now time.Time) bool {
	e := l.ledger.Ready()
	for _, g := range e.Grants {
		if j := l.jobs[g.Job]; j != nil {
			j.Granted(g)
		}
	}
	for _, v := range e.Revoked {
		if j := l.jobs[v.Job]; j != nil {
			j.Revoked(v)
			l.logger.Debug("lease revoked", "job", v.Job, "rank", v.Rank, "lease", v.Lease, "why", v.Why)
		}
	}
	for _, b := range e.Back {
		if a := l.nodes[b.Drive.Node]; a != nil {
			a.returned.add(b.ID, now)
		}
	}
	for _, f := range e.Failed {
		if j := l.jobs[f.Job]; j != nil {
			j.Fail(f.Why, now)
		}
	}
	for _, d := range e.Done {
		if j := l.jobs[d.Job]; j != nil {
			j.EpochDelivered(d.Number, now)
			j.poke()
		}
	}
	for _, n := range e.Needed {
		if j := l.jobs[n.Job]; j != nil {
			j.EpochNeeded(n.Number)
		}
	}
	return len(e.Grants)+len(e.Revoked)+len(e.Back)+len(e.Failed)+len(e.Done)+len(e.Needed) > 0
}

// settleLives carries out the effects of the jobs' lives. It reports whether there were effects. l.mu is held.
func (l *leader) settleLives(now time.Time) bool {
	effects := l.lives.Ready()
	for _, e := range effects {
		switch e := e.(type) {
		case lifecycle.Moved:
			l.moved(e)
		case lifecycle.Refused:
			l.logger.Error("a transition that cannot be", "job", e.Job, "error", e.Err)
		case lifecycle.BeginEpoch:
			l.beginEpoch(l.jobs[e.Job], e.Epoch, now)
		case lifecycle.DetachRank:
			l.detachRank(e, now)
		case lifecycle.EndJob:
			l.concludeJob(l.jobs[e.Job], e.Phase, now)
		case lifecycle.WakeRank:
			l.jobs[e.Job].notify(e.Rank)
		case lifecycle.FindPartitions:
			(&conductor{l, l.jobs[e.Job]}).findPartitions()
		case lifecycle.DropEdition:
			l.jobs[e.Job].dropEdition(e.Number)
		case lifecycle.EditionBegun:
			g := l.jobs[e.Job].editions[e.Edition.Number]
			g.Edition = e.Edition
			l.logger.Info("a further edition", "job", e.Job, "edition", g.Number, "epoch", g.First,
				"partitions", len(g.data.Manifest.Partitions), "digest", g.Digest.String()[:12])
		default:
			l.logger.Error("an effect that the leader does not know", "what", fmt.Sprintf("%T", e))
		}
	}
	return len(effects) > 0
}

// moved wakes the calls that watch a job when the job has entered another phase. l.mu is held.
func (l *leader) moved(e lifecycle.Moved) {
	l.logger.Info("job", "job", e.Job, "from", string(e.From), "to", string(e.To), "why", e.Why)
	j := l.jobs[e.Job]
	j.changed.Broadcast()
	j.poke()
}

// detachRank takes back the leases of a rank whose launcher is gone. l.mu is held.
func (l *leader) detachRank(e lifecycle.DetachRank, now time.Time) {
	if err := l.ledger.Detach(e.Job, e.Rank, e.Why, now); err != nil && !errors.Is(err, ledger.ErrUnknown) {
		l.logger.Error("detach a rank", "job", e.Job, "rank", e.Rank, "error", err)
	}
	l.logger.Info("rank detached", "job", e.Job, "rank", e.Rank, "why", e.Why, "last_call", e.Last)
}

// beginEpoch begins an epoch in the ledger. A job whose epoch cannot begin fails. l.mu is held.
func (l *leader) beginEpoch(j *job, epoch uint64, now time.Time) {
	if err := l.beginInLedger(j, epoch, now); err != nil {
		j.Fail(err.Error(), now)
	}
}

func (l *leader) beginInLedger(j *job, epoch uint64, now time.Time) error {
	g := j.editionOf(epoch)
	if g == nil {
		return fmt.Errorf("%w: job %s has no epoch %d", ledger.ErrUnknown, j.ID, epoch)
	}
	o := j.plan
	o.Epoch = epoch
	plan, err := g.makePlan(o)
	if err != nil {
		return fmt.Errorf("epoch %d: %w", epoch, err)
	}
	e := ledger.Epoch{Job: j.ID, Number: epoch, Digest: g.Digest, Plan: plan, Partitions: g.words}
	if j.resume != nil && j.resume.Epoch == epoch && g.Number == 0 {
		e.Resume = j.resume
	}
	if err := l.ledger.Begin(e, now); err != nil {
		return err
	}
	if rows, live := l.ledger.EpochRows(j.ID, epoch); live {
		j.EpochBegun(epoch, rows)
	}
	return nil
}

// concludeJob keeps the conclusion of a job that has ended, and removes the job from the ledger. The job's goroutine
// stores the conclusion and makes the nodes forget the job. l.mu is held.
func (l *leader) concludeJob(j *job, phase record.Phase, now time.Time) {
	status := l.status(j, now)
	for _, r := range status.Ranks {
		r.Attached = false
	}
	c := lifecycle.Conclusion{Redelivered: status.Redelivered}
	c.Status, _ = proto.Marshal(status) // the message has plain fields only and cannot fail
	if phase == record.Abandoned {
		c.Token = l.lastToken(j)
	}
	j.Conclude(c)
	if err := l.ledger.RemoveJob(j.ID, now); err != nil && !errors.Is(err, ledger.ErrUnknown) {
		l.logger.Error("forget the job's splits", "job", j.ID, "error", err)
	}
}

// maxLastToken is the largest token that is kept of an abandoned job, in bytes.
const maxLastToken = 256 << 10

// lastToken returns the token of the acknowledged mini-batches of an abandoned job, from which a later trainer can
// continue. It is nil if there is no token, or if the token is too large. l.mu is held.
func (l *leader) lastToken(j *job) []byte {
	t, err := l.ledger.Token(j.ID)
	if err == nil {
		var b []byte
		if b, err = t.MarshalBinary(); err == nil && len(b) <= maxLastToken {
			return b
		}
	}
	l.logger.Warn("of an abandoned job no token is kept", "job", j.ID, "error", err)
	return nil
}

// dropEdition forgets the data of an edition that all ranks have left, but for the names of its partitions.
func (j *job) dropEdition(number int) {
	for _, p := range j.editions[number].data.Manifest.Partitions {
		j.formerly[p.Name] = struct{}{}
	}
	delete(j.editions, number)
}
