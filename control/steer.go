package control

import (
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/steering"
	"github.com/millrace/millrace/control/upkeep"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/allocation"
	"github.com/millrace/millrace/trainmgr/autoscale"
)

// maxDecisions is how many of the autoscaler's decisions about a job are kept, and stored with its state.
const maxDecisions = 64

// steer reviews a job, and carries out what package steering decides.
func (c *conductor) steer() {
	c.happen(func(now time.Time) {
		if c.job.Phase().Ended() {
			return
		}
		if v, begun := c.viewLocked(now); begun {
			d := c.job.steering.Step(v)
			c.carryOutDecisionLocked(&d, &v)
		}
	})
}

// viewLocked describes the job as it is now. It reports false if no epoch was begun.
func (c *conductor) viewLocked(now time.Time) (v steering.View, begun bool) {
	status, err := c.mu.machine.Ledger.Status(c.job.ID, now)
	if err != nil {
		return v, false
	}
	st := c.job.State()
	v = steering.View{
		Supply: c.job.supply(c.mu.fleet, c.mu.upkeep, c.job.editionOf(status.Epoch)), Rates: steering.Rates{T: st.T, P: st.P},
		Now: now, Seconds: now.Sub(c.began).Seconds(), Running: c.job.Phase() == record.Running,
		ShortMeasured: c.job.short, Status: status, Allocation: st.Allocation, Busy: meanBusy(c.mu.fleet, status.Running),
		EpochRows: c.job.epochRows(), EpochsAfter: float64(c.job.EndEpoch()) - float64(status.Epoch) - 1,
	}
	if c.o.WorkerHook != "" {
		v.Startable = startable(c.mu.fleet, c.o.WorkersMost)
	}
	return v, true
}

// supply describes what can make the job's splits over an edition; nil: of the edition nothing is known.
func (j *job) supply(f *fleet.Fleet, nodes *upkeep.Keeper, g *edition) steering.Supply {
	s := steering.Supply{Workers: j.workersOf(f)}
	if g == nil {
		return s
	}
	prepared := func(at fleet.DriveID) bool {
		return nodes.IsPrepared(at.Node, g.Digest) && nodes.Takes(ledger.DriveID{Node: at.Node, Name: at.Drive})
	}
	held := g.holdersIn(f)
	s.Partitions, s.Holding = g.data.Manifest.Partitions, held.byPartition
	for _, at := range held.drives {
		if d := f.Drive(at); j.employs(at, d) {
			ready := !f.Draining(at.Node) && driveState(d.State, false) == upkeep.Ready
			s.Holders = append(s.Holders, steering.Worker{ID: at, Drive: d, Ready: ready, Prepared: prepared(at)})
		}
	}
	for i := range s.Workers {
		s.Workers[i].Prepared = prepared(s.Workers[i].ID)
	}
	return s
}

// startable counts the workers of any reach that the hook can start.
func startable(f *fleet.Fleet, most int) int {
	live := 0
	f.Live(func(s *apiv1.NodeStatus) { live += sharedWorkers(s) })
	return max(most-live, 0)
}

// meanBusy returns the mean share of time in which the engines of drives work, by the reports of their nodes; 0: not
// known.
func meanBusy(f *fleet.Fleet, drives []ledger.DriveID) (mean float64) {
	for _, id := range drives {
		d := f.Drive(fleet.DriveID{Node: id.Node, Drive: id.Name})
		mean += d.GetBusy() / float64(max(d.GetThreads(), 1)) / float64(len(drives))
	}
	return mean
}

// carryOutDecisionLocked carries out a decision that follows from a view of the job.
func (c *conductor) carryOutDecisionLocked(d *steering.Decision, v *steering.View) {
	if d.NeedsWorkers && !c.job.needsWorkers {
		c.logger.Info("the job needs workers without data", "job", c.job.ID, "allowed", v.Status.Allowed,
			"rows_no_drive_can_make", v.Status.Orphans+v.Status.Unheld)
		c.job.needsWorkers = true // prepared workers stay prepared
		c.mu.upkeep.WorkersNeeded()
	}
	if d.T > 0 {
		c.job.TrainerMeasured(d.T)
	}
	if d.Err != nil {
		c.logger.Warn("allocate drives", "job", c.job.ID, "error", d.Err)
	}
	if d.Scaled != nil {
		c.job.keepDecision(d.Scaled, c.logger)
	}
	if a := d.Allocation; a != nil {
		c.logger.Info("scaled", "job", c.job.ID, "from", v.Allocation.Drives, "to", a.Drives, "workers_from",
			v.Allocation.Workers, "workers_to", a.Workers, "why", a.Note, "inputs", d.Scaled.Inputs)
		if err := allow(c.mu.machine.Ledger, c.job.ID, *a, v.Now); err != nil {
			c.logger.Error("allow drives", "job", c.job.ID, "error", err)
		} else {
			c.job.Allocated(*a)
			c.job.poke()
		}
	}
	divideSplits(c.mu.machine.Ledger, c.job.ID, d.Shares, v.Now, c.logger)
	if d.Measure != nil {
		g := c.job.editionOf(v.Status.Epoch)
		var source *apiv1.PartitionSource
		if !d.Holder {
			source = c.job.sourceToMeasure(c.mu.fleet, g)
		}
		c.wg.Go(func() { c.measureJoined(*d.Measure, d.Holder, g.Digest, source) })
	}
}

// divideSplits sets the shares of a job's ranks in the ledger.
func divideSplits(l *ledger.Ledger, job string, shares []steering.Share, now time.Time, logger *slog.Logger) {
	for _, s := range shares {
		logger.Info("share of the workers elsewhere", "job", job, "rank", s.Rank, "ratio", s.Ratio, "why", s.Why)
		if err := l.ShareSplits(job, s.Rank, s.Ratio, now); err != nil {
			logger.Error("share splits", "job", job, "rank", s.Rank, "error", err)
		}
	}
}

// reviewSharesLocked decides the shares of all ranks now: a rank has attached, or its own worker has come.
func (c *conductor) reviewSharesLocked(now time.Time) {
	if !c.job.steering.Divides() {
		return
	}
	if v, begun := c.viewLocked(now); begun {
		divideSplits(c.mu.machine.Ledger, c.job.ID, c.job.steering.ReviewShares(v), now, c.logger)
		c.settleLocked(now)
	}
}

// allocateLocked decides with how many drives the job begins, and sets the number in the ledger.
func (c *conductor) allocateLocked(
	g *edition, p map[string]float64, t float64, now time.Time,
) (allocation.Allocation, error) {
	s := c.job.supply(c.mu.fleet, c.mu.upkeep, g)
	a, err := c.job.steering.Allocate(&s, &steering.Rates{T: t, P: p}, c.job.short)
	if err != nil {
		return a, err
	}
	c.logger.Info("allocated drives", "job", c.job.ID, "drives", a.Drives, "wanted", a.Wanted, "workers", a.Workers,
		"t_rows_per_second", t, "expected_stall_seconds", a.ExpectedStall.Seconds(), "note", a.Note)
	return a, allow(c.mu.machine.Ledger, c.job.ID, a, now)
}

// allow sets in the ledger how many drives a job may run, and how many workers of any reach beside them.
func allow(l *ledger.Ledger, job string, a allocation.Allocation, now time.Time) error {
	return errors.Join(l.Allocate(job, a.Drives, now), l.AllowWorkers(job, a.Workers, now))
}

// measureJoined asks for P of a worker that has joined since the job began. A worker of any reach reads source.
func (c *conductor) measureJoined(
	at fleet.DriveID, holder bool, digest dataset.Digest, source *apiv1.PartitionSource,
) {
	p, err := c.calls.measure(c.ctx, at.Node, at.Drive, digest, source, 0)
	if err != nil {
		c.logger.Warn("measure P", "job", c.job.ID, "node", at.Node, "drive", at.Drive, "error", err)
		c.happen(func(now time.Time) { c.job.steering.NotMeasured(at, now) })
		return
	}
	c.happen(func(now time.Time) {
		if c.job.Phase().Ended() {
			return
		}
		c.logger.Info("measured P", "job", c.job.ID, "node", at.Node, "drive", at.Drive, "p_rows_per_second", p.rows,
			"spread_share", p.spread, "settled", p.settled, "joined", true)
		c.job.DriveMeasured(driveName(at), p.rows)
		v, _ := c.viewLocked(now)
		if a := c.job.steering.Measured(at, holder, v); a != nil {
			c.job.Allocated(*a)
		}
		c.job.poke()
	})
}

// sourceToMeasure chooses the partition on which P of a worker of any reach is measured. It chooses another
// partition every time, so that workers that join together do not all read from one drive.
func (j *job) sourceToMeasure(f *fleet.Fleet, g *edition) *apiv1.PartitionSource {
	partitions := g.data.Manifest.Partitions
	for range len(partitions) {
		j.measuredOn++
		p := partitions[j.measuredOn%len(partitions)]
		if p.Rows == 0 {
			continue
		}
		if s := f.Source(p); len(s.Copies) > 0 || s.Url != "" {
			return s
		}
		if j.measuredOn%64 == 0 {
			break // few partitions can be read: the worker asks Locate for another one
		}
	}
	return nil
}

// keepDecision keeps a decision of the autoscaler among the last ones.
func (j *job) keepDecision(r *autoscale.Record, logger *slog.Logger) {
	b, err := json.Marshal(r)
	if err != nil {
		logger.Error("a decision that cannot be written down", "job", j.ID, "error", err)
		return
	}
	j.decisions = append(j.decisions, b)
	j.decisions = j.decisions[max(0, len(j.decisions)-maxDecisions):]
}
