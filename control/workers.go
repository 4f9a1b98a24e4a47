package control

import (
	"time"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/steering"
	"github.com/millrace/millrace/control/upkeep"
	apiv1 "github.com/millrace/millrace/host/api/v1"
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
func (j *job) drivesMake() bool { return j.steering.Makers.AllowHolders() }

// workersMake reports whether some workers of any reach may make splits of the job.
func (j *job) workersMake() bool { return j.steering.Makers.AllowWorkers() }

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

// workersOf lists the live workers of any reach that may make splits of a job, without those that are drained.
func (j *job) workersOf(f *fleet.Fleet) (workers []steering.Worker) {
	if !j.workersMake() {
		return nil
	}
	f.Live(func(s *apiv1.NodeStatus) {
		if f.Draining(s.Name) {
			return
		}
		for _, d := range s.Drives {
			own := d.Serves != nil
			switch {
			case !fleet.ReachesAny(d) || driveState(d.State, false) != upkeep.Ready:
			case own && (d.Serves.Job != j.ID || j.steering.Makers&ledger.NoOwn != 0):
			case !own && j.steering.Makers&ledger.NoAny != 0:
			default:
				workers = append(workers, steering.Worker{ID: fleet.DriveID{Node: s.Name, Drive: d.Name}, Drive: d,
					Ready: true})
			}
		}
	})
	return workers
}

// employs reports whether a job lets a holder make its splits. d is nil if the holder's node does not list it.
func (j *job) employs(at fleet.DriveID, d *apiv1.Drive) bool {
	return d != nil && j.steering.Makers.Allows(ledgerDrive(at.Node, d, nil))
}

// reachOf returns the word for a worker's reach in a grant. It is empty if the worker holds the partition.
func reachOf(d *apiv1.Drive) string {
	if fleet.ReachesAny(d) {
		return apiv1.ReachAny
	}
	return ""
}

// addTroubles adds the failures of workers of any reach to the records of their nodes.
func addTroubles(records []*apiv1.NodeRecord, drives []ledger.DriveStatus, now time.Time) {
	byNode := map[string]*apiv1.NodeRecord{}
	for _, r := range records {
		byNode[r.Status.Name] = r
	}
	for _, d := range drives {
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
