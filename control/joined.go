package control

import (
	"slices"
	"time"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// measureAgain is the pause before the leader measures a drive again whose P could not be measured.
const measureAgain = time.Minute

// measureJoined asks for P of a drive that has joined since the job began, one drive at a time: the mean of P
// decides how many drives the job wants. A node that knows P of the pipeline answers at once. Otherwise the drive is
// measured while it may already make splits, and the measured P is a little below its P alone.
func (c *conductor) measureJoined() {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.job.Phase() != record.Running || c.job.measuring {
		return
	}
	v, err := c.machine.Ledger.Status(c.job.ID, now)
	if err != nil {
		return // no epoch was begun
	}
	g := c.job.editionOf(v.Epoch)
	if g == nil || c.tooShort(&v) {
		return
	}
	at, ok := c.unmeasuredDrive(g, now)
	var source *apiv1.PartitionSource
	if !ok {
		if at, ok = c.unmeasuredWorker(g, now); !ok {
			return
		}
		source = c.sourceToMeasure(g)
	}
	c.job.measuring = true
	c.wg.Go(func() {
		p, err := c.calls.measure(c.ctx, at.Node, at.Drive, g.Digest, source, 0)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.job.measuring = false
		if err != nil {
			if c.job.unmeasured == nil {
				c.job.unmeasured = map[string]time.Time{}
			}
			c.job.unmeasured[driveName(at)] = time.Now()
			c.logger.Warn("measure P", "job", c.job.ID, "node", at.Node, "drive", at.Drive, "error", err)
			return
		}
		c.driveJoined(g, at, p)
	})
}

// measureSeconds is about how long it takes to measure P of a worker that joins a job, with the opening of a partition.
const measureSeconds = 1

// tooShort reports whether the rest of the job takes less than api.ShortJob times as long as measuring P of a worker,
// which the worker's part of the job would not make up for. l.mu is held.
func (c *conductor) tooShort(v *ledger.JobStatus) bool {
	rows := float64(v.RowsLeft) + c.job.epochRows()*(float64(c.job.EndEpoch())-float64(v.Epoch)-1)
	rate := 0.0
	for rank := range c.job.launchers {
		r := c.throughputs(uint32(rank))
		if r.unknown {
			return false
		}
		rate += r.own + r.others
	}
	if t := c.job.State().T; t > 0 {
		rate = min(rate, t)
	}
	return rows < api.ShortJob*measureSeconds*rate
}

// unmeasuredDrive finds a drive with unknown P that works for an edition. l.mu is held.
func (c *conductor) unmeasuredDrive(g *edition, now time.Time) (fleet.DriveID, bool) {
	p := c.job.State().P
	for _, holders := range g.holders(c.fleet) {
		for _, h := range holders {
			if c.employs(c.job, h) && c.measurable(h, g, p, now) {
				return h, true
			}
		}
	}
	return fleet.DriveID{}, false
}

// measurable reports whether P of a worker is not known and can be measured now. l.mu is held.
func (c *conductor) measurable(at fleet.DriveID, g *edition, p map[string]float64, now time.Time) bool {
	name := driveName(at)
	failed, tried := c.job.unmeasured[name]
	return p[name] <= 0 && c.upkeep.IsPrepared(at.Node, g.Digest) &&
		c.upkeep.Takes(ledger.DriveID{Node: at.Node, Name: at.Drive}) &&
		!(tried && now.Sub(failed) < measureAgain)
}

// unmeasuredWorker finds a worker of any reach that is prepared for an edition and whose P is not known. l.mu is
// held.
func (c *conductor) unmeasuredWorker(g *edition, now time.Time) (fleet.DriveID, bool) {
	p := c.job.State().P
	for _, at := range c.workersFor() {
		if c.measurable(at, g, p, now) && c.undisturbed(at) {
			return at, true
		}
	}
	return fleet.DriveID{}, false
}

// undisturbed reports whether the launchers measure nothing that a measurement of a worker would disturb. A rank's own
// worker uses the CPUs of the rank's trainer: the launcher measures T before its first Lease call, and its profile
// after that. l.mu is held.
func (c *conductor) undisturbed(at fleet.DriveID) bool {
	serves := c.servedRank(at)
	if serves == nil || serves.Job != c.job.ID || int(serves.Rank) >= len(c.job.launchers) {
		return true
	}
	k := &c.job.launchers[serves.Rank]
	return k.called && !profiles(k.progress)
}

// profiles reports whether a launcher measures its profile, or is about to do so.
func profiles(r *apiv1.RankReport) bool {
	return r.GetProfiling() != "" || r.GetTrainingSeconds() > 0 && r.ProfileSeconds == 0 && r.ProfileFrom == ""
}

// sourceToMeasure chooses the partition on which P of a worker of any reach is measured. It chooses another
// partition every time, so that workers that join together do not all read from one drive. l.mu is held.
func (c *conductor) sourceToMeasure(g *edition) *apiv1.PartitionSource {
	partitions := g.data.Manifest.Partitions
	for range len(partitions) {
		c.job.measuredOn++
		p := partitions[c.job.measuredOn%len(partitions)]
		if p.Rows == 0 {
			continue
		}
		if s := c.fleet.Source(p); len(s.Copies) > 0 || s.Url != "" {
			return s
		}
		if c.job.measuredOn%64 == 0 {
			break // few partitions can be read: the worker asks Locate for another one
		}
	}
	return nil
}

// driveJoined records P of a drive that joined, and computes again how many drives T requires. The autoscaler
// decides how many run. l.mu is held.
func (c *conductor) driveJoined(g *edition, at fleet.DriveID, p measuredP) {
	if c.job.Phase().Ended() {
		return
	}
	c.job.DriveMeasured(driveName(at), p.rows)
	delete(c.job.unmeasured, driveName(at))
	c.logger.Info("measured P", "job", c.job.ID, "node", at.Node, "drive", at.Drive, "p_rows_per_second", p.rows,
		"spread_share", p.spread, "settled", p.settled, "joined", true)
	st := c.job.State()
	if !slices.Contains(c.workersFor(), at) {
		c.countAgain(g, st)
	}
	c.job.poke()
}

// countAgain computes how many drives T requires. l.mu is held.
func (c *conductor) countAgain(g *edition, st record.State) {
	if a, err := allocation.Allocate(st.T, c.driveLoads(g, st.P), int(c.job.spec.MaxDrives)); err == nil && st.T > 0 {
		st.Allocation.Wanted, st.Allocation.ExpectedStall = a.Wanted, a.ExpectedStall
		c.job.Allocated(st.Allocation)
	}
}
