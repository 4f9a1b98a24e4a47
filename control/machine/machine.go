package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/presence"
)

// Config holds the settings of a machine.
type Config struct {
	Ledger ledger.Config
	Lives  lifecycle.Config
}

// Machine holds all jobs of a cluster, for one leader's term.
type Machine struct {
	Ledger *ledger.Ledger     // The owner reports events of drives to the ledger.
	Lives  *lifecycle.Machine // The lives answer questions about all jobs.

	fence   uint64
	jobs    map[string]*Job // The key is the ID.
	waiting map[uint64]*leaseCall
	effects []Effect
}

// New makes a machine without jobs.
func New(c Config) *Machine {
	return &Machine{
		Ledger: ledger.New(c.Ledger), Lives: lifecycle.New(c.Lives), fence: c.Ledger.Fence,
		jobs: map[string]*Job{}, waiting: map[uint64]*leaseCall{},
	}
}

// Ready passes effects between the ledger and the lives, and returns the effects for the owner, in their order. The
// owner's actions may cause further effects, so the owner calls Ready until it returns none.
func (m *Machine) Ready(now time.Time) []Effect {
	m.settle(now)
	effects := m.effects
	m.effects = nil
	return effects
}

// settle passes effects between the ledger and the lives until none is left. It keeps the effects for the owner.
func (m *Machine) settle(now time.Time) {
	for follows := true; follows; {
		follows = m.takeFromLedger(now)
		follows = m.takeFromLives(now) || follows
	}
}

func (m *Machine) emit(e Effect) { m.effects = append(m.effects, e) }

// takeFromLedger passes the ledger's effects to the jobs. It reports whether there were effects.
func (m *Machine) takeFromLedger(now time.Time) bool {
	e := m.Ledger.Ready()
	for _, g := range e.Grants {
		if j := m.jobs[g.Job]; j != nil {
			j.Granted(g)
		}
	}
	for _, v := range e.Revoked {
		if j := m.jobs[v.Job]; j != nil {
			j.Revoked(v)
			m.emit(Revoked{v})
		}
	}
	for _, b := range e.Back {
		m.emit(Returned{b})
	}
	for _, f := range e.Failed {
		if j := m.jobs[f.Job]; j != nil {
			j.Fail(f.Why, now)
		}
	}
	for _, d := range e.Done {
		if j := m.jobs[d.Job]; j != nil {
			j.EpochDelivered(d.Number, now)
			m.emit(Delivered{Job: d.Job, Epoch: d.Number})
		}
	}
	for _, n := range e.Needed {
		if j := m.jobs[n.Job]; j != nil {
			j.EpochNeeded(n.Number)
		}
	}
	return len(e.Grants)+len(e.Revoked)+len(e.Back)+len(e.Failed)+len(e.Done)+len(e.Needed) > 0
}

// takeFromLives carries out the effects of the jobs' lives. It reports whether there were effects.
func (m *Machine) takeFromLives(now time.Time) bool {
	effects := m.Lives.Ready()
	for _, e := range effects {
		switch e := e.(type) {
		case lifecycle.BeginEpoch:
			if err := m.begin(m.jobs[e.Job], e.Epoch, now); err != nil {
				m.jobs[e.Job].Fail(err.Error(), now)
			}
		case lifecycle.DetachRank:
			err := m.Ledger.Detach(e.Job, e.Rank, e.Why, now)
			if errors.Is(err, ledger.ErrUnknown) {
				err = nil // No epoch of the job has begun.
			}
			m.emit(Detached{DetachRank: e, Err: err})
		case lifecycle.WakeRank:
			m.wake(m.jobs[e.Job], e.Rank, now)
		default:
			m.emit(Life{e})
		}
	}
	return len(effects) > 0
}

// begin begins an epoch in the ledger.
func (m *Machine) begin(j *Job, epoch uint64, now time.Time) error {
	g := j.editionOf(epoch)
	if g == nil {
		return fmt.Errorf("%w: job %s has no epoch %d", ledger.ErrUnknown, j.ID, epoch)
	}
	o := j.Plan
	o.Epoch = epoch
	plan, err := g.MakePlan(o)
	if err != nil {
		return fmt.Errorf("epoch %d: %w", epoch, err)
	}
	e := ledger.Epoch{Job: j.ID, Number: epoch, Digest: g.Digest, Plan: plan, Partitions: g.Words}
	if j.Resume != nil && j.Resume.Epoch == epoch && g.Number == 0 {
		e.Resume = j.Resume
	}
	if err := m.Ledger.Begin(e, now); err != nil {
		return err
	}
	if rows, live := m.Ledger.EpochRows(j.ID, epoch); live {
		j.EpochBegun(epoch, rows)
	}
	return nil
}

// checkSession returns an error if a later leader made a session.
func (m *Machine) checkSession(s ledger.Session) error {
	if s.Fence > m.fence {
		return ErrDeposed
	}
	return nil
}

// Tick applies the passing of time.
func (m *Machine) Tick(now time.Time) {
	m.Lives.Tick(now)
	// A missing launcher explains the end of a lease better than the expiry of the lease.
	for m.takeFromLives(now) {
		m.takeFromLedger(now)
	}
	m.Ledger.Tick(now)
}

// ConnectionClosed records that a launcher's connection is closed.
func (m *Machine) ConnectionClosed(c presence.Conn, now time.Time) { m.Lives.ConnectionClosed(c, now) }
