package control

import (
	"time"

	"github.com/millrace/millrace/trainmgr/allocation"
	"github.com/millrace/millrace/trainmgr/control/fleet"
	"github.com/millrace/millrace/trainmgr/control/record"
)

// measureAgain is how long a drive is left alone whose P could not be measured.
const measureAgain = time.Minute

// measureJoined asks for P of a drive that has joined since the job began, one at a time: how many drives the job wants
// is decided by the mean. A node that knows P of the pipeline answers at once; else the drive is measured while it may
// work already, and counts for a little less than it can do alone.
func (c *conductor) measureJoined() {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.job.Phase() != record.Running || c.job.measuring {
		return
	}
	v, err := c.ledger.Status(c.job.ID, now)
	if err != nil {
		return // no epoch was begun
	}
	g := c.job.generationOf(v.Epoch)
	if g == nil {
		return
	}
	at, ok := c.unmeasuredDrive(g, now)
	if !ok {
		return
	}
	c.job.measuring = true
	c.wg.Go(func() {
		rows, err := c.calls.measure(c.ctx, at.Node, at.Drive, g.Digest)
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
		c.driveJoined(g, at, rows)
	})
}

// unmeasuredDrive finds a drive that works for a generation and whose P is not known. l.mu is held.
func (c *conductor) unmeasuredDrive(g *generation, now time.Time) (fleet.DriveID, bool) {
	p := c.job.State().P
	for _, holders := range g.holders(c.fleet) {
		for _, h := range holders {
			a, name := c.nodes[h.Node], driveName(h)
			failed, tried := c.job.unmeasured[name]
			if p[name] > 0 || a == nil || !a.preparedJobs[g.Digest] || a.drives[h.Drive] != driveReady || tried &&
				now.Sub(failed) < measureAgain {
				continue
			}
			return h, true
		}
	}
	return fleet.DriveID{}, false
}

// driveJoined takes P of a drive that joined, and computes again how many drives T wants. The autoscaler decides how
// many run. l.mu is held.
func (c *conductor) driveJoined(g *generation, at fleet.DriveID, rows float64) {
	if c.job.Phase().Ended() {
		return
	}
	c.job.DriveMeasured(driveName(at), rows)
	delete(c.job.unmeasured, driveName(at))
	c.logger.Info("measured P", "job", c.job.ID, "node", at.Node, "drive", at.Drive, "p_rows_per_second", rows,
		"joined", true)
	st := c.job.State()
	if a, err := allocation.Allocate(st.T, c.driveLoads(g, st.P), int(c.job.spec.MaxDrives)); err == nil && st.T > 0 {
		st.Allocation.Wanted, st.Allocation.ExpectedStall = a.Wanted, a.ExpectedStall
		c.job.Allocated(st.Allocation)
	}
	c.job.poke()
}
