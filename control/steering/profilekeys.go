package steering

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/millrace/millrace/control/fleet"
	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// ProfileKeys returns the parts of the keys of a rank's profile that a launcher does not know: the canonical pipeline,
// and the workers of both sides, by kind.
func (t *Terms) ProfileKeys(pipeline []byte, own, others map[string]int) *apiv1.ProfileKeys {
	digest := sha256.Sum256(pipeline)
	keys := &apiv1.ProfileKeys{Pipeline: digest[:]}
	if len(own) > 0 {
		keys.OwnWorkers = digestKinds(own, "")
	}
	keys.OtherWorkers = digestKinds(others, fmt.Sprintf("placement %s, %d ranks, at most %d drives, weight %v",
		t.Spec.Placement, t.Spec.Ranks, t.Spec.MaxDrives, t.Spec.Weight))
	return keys
}

// Kinds counts the live workers that may make a rank's splits, by kind: those that serve the rank alone, and all
// others. A worker's name is not part of its kind, so a worker that is replaced by an equal one changes nothing.
func (s *Supply) Kinds(rank uint32) (own, others map[string]int) {
	own, others = map[string]int{}, map[string]int{}
	for i := range s.Holders {
		if h := &s.Holders[i]; h.Ready {
			others[workerKind(h.Drive)]++
		}
	}
	for i := range s.Workers {
		switch d := s.Workers[i].Drive; {
		case d.GetServes() == nil:
			others[workerKind(d)]++
		case d.Serves.Rank == rank:
			own[workerKind(d)]++
		}
	}
	return own, others
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
