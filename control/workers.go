package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/upkeep"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// makersOf returns the workers that a placement excludes.
func makersOf(p record.Placement) ledger.Makers {
	const holders = ledger.NoDrives | ledger.NoCPUs | ledger.NoCards
	const others = ledger.NoAny | ledger.NoOwn
	switch p {
	case record.PlacementHeld:
		return others
	case record.PlacementInStorage:
		return others | holders&^ledger.NoDrives
	case record.PlacementNodeCPU:
		return others | holders&^ledger.NoCPUs
	case record.PlacementNodeCard:
		return others | holders&^ledger.NoCards
	case record.PlacementPool:
		return holders | ledger.NoOwn
	case record.PlacementTrainer:
		return holders | ledger.NoAny
	}
	return 0 // PlacementAuto
}

// drivesMake reports whether some holders may make splits of the job.
func (j *job) drivesMake() bool { return j.makers.AllowHolders() }

// workersMake reports whether some workers of any reach may make splits of the job.
func (j *job) workersMake() bool { return j.makers.AllowWorkers() }

// ledgerDrive returns a drive of a node's status as the ledger describes drives.
func ledgerDrive(node string, d *apiv1.Drive, words []string) ledger.Drive {
	v := ledger.Drive{ID: ledger.DriveID{Node: node, Name: d.Name}, Streams: int(max(d.Streams, 1)), Partitions: words}
	if fleet.ReachesAny(d) {
		v.Reach = ledger.Any
	}
	switch fleet.ComputesOn(d) {
	case fleet.OnCPU:
		v.Compute = ledger.OnCPU
	case fleet.OnCard:
		v.Compute = ledger.OnCard
	}
	if d.Serves != nil {
		v.Serves = &ledger.RankRef{Job: d.Serves.Job, Rank: d.Serves.Rank}
	}
	return v
}

// reviewWorkers decides whether a job needs workers of any reach. When the job begins to need workers, their nodes
// are prepared. l.mu is held.
func (c *conductor) reviewWorkers(v *ledger.JobStatus) {
	needs := c.job.workersMake() && (!c.job.drivesMake() || v.Allowed != 0 || v.Orphans+v.Unheld > 0)
	if needs && !c.job.needsWorkers {
		c.logger.Info("the job needs workers without data", "job", c.job.ID, "allowed", v.Allowed,
			"rows_no_drive_can_make", v.Orphans+v.Unheld)
		c.job.needsWorkers = true
		c.upkeep.WorkersNeeded()
		c.settle(time.Now())
	}
	c.job.needsWorkers = c.job.needsWorkers || needs // prepared workers stay prepared
	c.job.leastWorkers = 0
	c.job.readable = v.RowsLeft == 0 || v.RowsLeft > v.Unheld
	c.job.attended = slices.ContainsFunc(v.Ranks, func(r ledger.RankStatus) bool { return r.Attached })
	if v.RowsLeft > v.Unheld && c.job.makers&ledger.NoAny == 0 && (!c.job.drivesMake() || v.Orphans > 0) {
		c.job.leastWorkers = 1
	}
}

// startable counts the workers that the hook can start for a job. l.mu is held.
func (c *conductor) startable() int {
	if c.o.WorkerHook == "" || c.job.makers&ledger.NoAny != 0 || !c.job.readable {
		return 0
	}
	live := 0
	c.fleet.Live(func(s *apiv1.NodeStatus) { live += sharedWorkers(s) })
	return max(c.o.WorkersMost-live, 0)
}

// workersFor names the live workers of any reach that could serve a job. l.mu is held.
func (c *conductor) workersFor() (names []fleet.DriveID) {
	if !c.job.workersMake() {
		return nil
	}
	c.fleet.Live(func(s *apiv1.NodeStatus) {
		if c.fleet.Draining(s.Name) {
			return
		}
		for _, d := range s.Drives {
			own := d.Serves != nil
			switch {
			case !fleet.ReachesAny(d) || driveState(d.State, false) != upkeep.Ready:
			case own && (d.Serves.Job != c.job.ID || c.job.makers&ledger.NoOwn != 0):
			case !own && c.job.makers&ledger.NoAny != 0:
			default:
				names = append(names, fleet.DriveID{Node: s.Name, Drive: d.Name})
			}
		}
	})
	return names
}

// employs reports whether a job lets a holder make its splits. l.mu is held.
func (l *leader) employs(j *job, at fleet.DriveID) bool {
	d := l.driveAt(at)
	return d != nil && j.makers.Allows(ledgerDrive(at.Node, d, nil))
}

// gap decides how many workers of any reach a job is allowed beside its drives. l.mu is held.
func (c *conductor) gap(g *edition, drives []allocation.Worker, p map[string]float64, t float64) int {
	if !c.job.workersMake() {
		return 0
	}
	if !c.job.drivesMake() && (t == 0 || c.job.makers&ledger.NoAny != 0) {
		return ledger.AllWorkers // T is not known, or every rank has its own workers
	}
	sum, known := 0.0, 0
	for _, w := range c.workersFor() {
		if rows := p[driveName(w)]; rows > 0 {
			sum, known = sum+rows, known+1
		}
	}
	most := int(c.job.spec.MaxDrives)
	need := allocation.FillGap(t, drives, most, g.data.Manifest.Rows(), sum/float64(max(known, 1))).Workers
	if most > 0 {
		need = min(need, max(most-min(most, len(drives)), 0))
	}
	return need
}

// gapWords adds to an allocation's note how many workers of any reach make the splits that the drives leave.
func gapWords(note string, workers int) string {
	switch {
	case workers == ledger.AllWorkers && note == "":
		return "workers without data make every split, without a bound"
	case workers == 0:
		return note
	case note == "":
		return fmt.Sprintf("%d workers without data make every split", workers)
	}
	return fmt.Sprintf("%s; %d workers without data are allowed for the rest", note, workers)
}

// reachOf returns the word for a worker's reach in a grant. It is empty if the worker holds the partition. l.mu is
// held.
func (l *leader) reachOf(id ledger.DriveID) string {
	for _, d := range l.fleet.Status(id.Node).GetDrives() {
		if d.Name == id.Name && fleet.ReachesAny(d) {
			return apiv1.ReachAny
		}
	}
	return ""
}

// addTroubles adds the failures of workers of any reach to the records of their nodes. l.mu is held.
func (l *leader) addTroubles(records []*apiv1.NodeRecord, now time.Time) {
	byNode := map[string]*apiv1.NodeRecord{}
	for _, r := range records {
		byNode[r.Status.Name] = r
	}
	for _, d := range l.machine.Ledger.Drives() {
		r := byNode[d.Drive.Node]
		if r == nil || d.Failures == 0 {
			continue
		}
		t := &apiv1.WorkerTrouble{Drive: d.Drive.Name, Failures: d.Failures}
		if !d.Aside.IsZero() {
			t.SetAside, t.SetAsideSeconds = d.State, max(d.Aside.Sub(now).Seconds(), 0)
		}
		r.Troubles = append(r.Troubles, t)
	}
}
