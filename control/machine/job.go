package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/ledger/format"
	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/sdk/dataset"
)

// Job is one job, from its submission until the machine forgets it. The owner fills in the exported fields and adds
// the job.
type Job struct {
	*lifecycle.Job // The machine sets the life when the job is added.

	LifeTerms   lifecycle.Terms
	LedgerTerms ledger.Job
	Plan        dataset.Options // The options have no epoch.
	Resume      *dataset.Token  // The job resumes from this token. A nil token means a new start.
	Shares      *float64        // A job that fixes the share of the workers elsewhere has it here.
	Data        Editions

	waiting [][]*leaseCall // The Lease calls that wait, by rank, in the order in which they came.
}

// Editions holds the data of a job's editions. Its owner adds and removes them as the job's life says.
type Editions interface {
	// Edition returns the data of an edition by its number, or nil if they are not kept.
	Edition(number int) *Edition
}

// Edition is a set of partitions that a job goes over in as many epochs as its specification asks for.
type Edition struct {
	record.Edition
	Manifest *dataset.Manifest
	Words    []string // Each partition has one word (see fleet.Word).
	Passing  []int64  // The rows of each partition that pass the filter. Nil means that all rows pass.
}

// MakePlan cuts the rows of the edition: those that pass the pipeline's filter.
func (g *Edition) MakePlan(o dataset.Options) (*dataset.Plan, error) {
	return dataset.NewSelectedPlan(g.Manifest, g.Passing, o)
}

// editionOf returns the edition of an epoch, or nil if the edition is no longer kept or not known yet.
func (j *Job) editionOf(epoch uint64) *Edition {
	if g, ok := j.EditionOf(epoch); ok {
		return j.Data.Edition(g.Number)
	}
	return nil
}

// Add takes a job: a new submission, or a job of an earlier leader, with its state and the ledger's records.
func (m *Machine) Add(j *Job, stored record.State, records []format.Record, now time.Time) error {
	j.waiting = make([][]*leaseCall, j.LifeTerms.Ranks)
	if !stored.Phase.Ended() {
		if err := m.addToLedger(j, now); err != nil {
			return err
		}
	}
	j.Job = m.Lives.Add(j.LifeTerms, stored)
	m.jobs[j.ID] = j
	if j.Phase().Ended() || !j.Phase().Begun() {
		return nil
	}
	return m.restore(j, records, now)
}

// addToLedger adds a job to the ledger, with the shares that the job's specification fixes.
func (m *Machine) addToLedger(j *Job, now time.Time) error {
	if err := m.Ledger.AddJob(j.LedgerTerms); err != nil || j.Shares == nil {
		return err
	}
	for rank := range uint32(j.LifeTerms.Ranks) {
		if err := m.Ledger.ShareSplits(j.LedgerTerms.ID, rank, *j.Shares, now); err != nil {
			return err
		}
	}
	return nil
}

// restore restores a job in the ledger, in the order that package ledger requires.
func (m *Machine) restore(j *Job, records []format.Record, now time.Time) error {
	for _, r := range records {
		if r.Kind == format.RanksRecord {
			if err := m.Ledger.Restore(r); err != nil {
				return err
			}
		}
	}
	live := m.Ledger.Live(j.ID)
	if len(live) == 0 {
		live = []uint64{j.FirstEpoch}
	}
	for _, e := range live {
		if j.editionOf(e) == nil {
			continue // A rank waits for an edition that the job does not have yet.
		}
		if err := m.begin(j, e, now); err != nil {
			return err
		}
	}
	for _, r := range records {
		if r.Kind == format.RanksRecord {
			continue
		}
		if err := m.Ledger.Restore(r); err != nil && !errors.Is(err, ledger.ErrUnknown) {
			return err // ErrUnknown marks a record of an epoch that all ranks have left.
		}
	}
	return m.Ledger.EndRestore(j.ID)
}

// RemoveFromLedger removes a job that has ended from the ledger.
func (m *Machine) RemoveFromLedger(j *Job, now time.Time) error {
	if err := m.Ledger.RemoveJob(j.ID, now); err != nil && !errors.Is(err, ledger.ErrUnknown) {
		return fmt.Errorf("forget the job's splits: %w", err)
	}
	return nil
}

// Forget drops a job that has ended.
func (m *Machine) Forget(id string) {
	delete(m.jobs, id)
	m.Lives.Forget(id)
}

// remove removes a call from the calls that wait.
func (m *Machine) remove(c *leaseCall) {
	delete(m.waiting, c.number)
	list := &c.job.waiting[c.request.Session.Rank]
	*list = slices.DeleteFunc(*list, func(other *leaseCall) bool { return other == c })
}
