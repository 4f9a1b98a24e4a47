package control

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/upkeep"
	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// profileKeys returns the parts of the keys of a rank's profile that a launcher does not know: the pipeline and the
// workers of both sides. It returns nil if no policy decides the share of the rank's own CPUs. l.mu is held.
func (c *conductor) profileKeys(g *edition, rank uint32) *apiv1.ProfileKeys {
	if !c.job.offload.Shares || c.job.offload.Fixed {
		return nil
	}
	own, others := c.workerKinds(g, rank)
	spec := c.job.spec
	pipeline := sha256.Sum256(g.resolved.Canonical())
	keys := &apiv1.ProfileKeys{Pipeline: pipeline[:]}
	if len(own) > 0 {
		keys.OwnWorkers = digestKinds(own, "")
	}
	keys.OtherWorkers = digestKinds(others, fmt.Sprintf("placement %s, %d ranks, at most %d drives, weight %v",
		spec.Placement, spec.Ranks, spec.MaxDrives, spec.Weight))
	c.logger.Debug("keys of a rank's profile", "job", c.job.ID, "rank", rank, "own_workers", own, "other_workers", others)
	return keys
}

// workerKinds counts the live workers that may make a rank's splits, by kind: those that serve the rank alone, and all
// others. A worker's name is not part of its kind, so a worker that is replaced by an equal one changes nothing. l.mu
// is held.
func (c *conductor) workerKinds(g *edition, rank uint32) (own, others map[string]int) {
	own, others = map[string]int{}, map[string]int{}
	seen := map[fleet.DriveID]bool{}
	for _, holders := range g.holders(c.fleet) {
		for _, h := range holders {
			if !seen[h] && !c.fleet.Draining(h.Node) && c.employs(c.job, h) {
				seen[h] = true
				if d := c.driveAt(h); d != nil && driveState(d.State, false) == upkeep.Ready {
					others[workerKind(d)]++
				}
			}
		}
	}
	for _, w := range c.workersFor() {
		switch d := c.driveAt(w); {
		case d == nil:
		case d.Serves == nil:
			others[workerKind(d)]++
		case d.Serves.Rank == rank:
			own[workerKind(d)]++
		}
	}
	return own, others
}

// driveAt returns the last report of a drive, or nil if its node does not list the drive. l.mu is held.
func (l *leader) driveAt(at fleet.DriveID) *apiv1.Drive {
	for _, d := range l.fleet.Status(at.Node).GetDrives() {
		if d.Name == at.Drive {
			return d
		}
	}
	return nil
}

// workerKind describes what decides a worker's throughput, as far as its node reports it.
func workerKind(d *apiv1.Drive) string {
	reach := apiv1.ReachHeld
	if fleet.ReachesAny(d) {
		reach = apiv1.ReachAny
	}
	return fmt.Sprintf("%q, reach %s, %d threads, %d streams, image %q", fleet.ComputesOn(d), reach, d.Threads, d.Streams,
		d.Image)
}

// digestKinds returns a digest of kinds of workers with their numbers, and of how the workers are shared.
func digestKinds(kinds map[string]int, shared string) []byte {
	h := sha256.New()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		_, _ = fmt.Fprintf(h, "%d x %s\n", kinds[kind], kind) // a hash does not fail
	}
	_, _ = io.WriteString(h, shared)
	return h.Sum(nil)
}
