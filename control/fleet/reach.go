package fleet

import (
	"fmt"
	"slices"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/quantity"
)

// The words of apiv1.Drive.computes_on.
const (
	OnDrive = "drive" // beside the drive's own flash
	OnCPU   = "cpu"   // the machine's cores
	OnCard  = "card"  // an accelerator without flash, to which windows are sent
)

// ReachesAny reports whether a worker can make splits of partitions that it does not hold.
func ReachesAny(d *apiv1.Drive) bool { return d.GetReach() == apiv1.ReachAny }

// ComputesOn returns the processor that computes a worker's mini-batches: OnDrive, OnCPU or OnCard.
func ComputesOn(d *apiv1.Drive) string {
	switch {
	case d.GetComputesOn() != "":
		return d.GetComputesOn()
	case d.GetComputes():
		return OnDrive
	}
	return OnCPU
}

// checkReach checks the reach of a worker in a status.
func checkReach(node string, d *apiv1.Drive) error {
	switch d.Reach {
	case "", apiv1.ReachHeld, apiv1.ReachAny:
	default:
		return fmt.Errorf("node %s: drive %s: reach %.20q: want %s or %s", node, d.Name, d.Reach, apiv1.ReachHeld,
			apiv1.ReachAny)
	}
	switch d.ComputesOn {
	case "", OnDrive, OnCPU, OnCard:
	default:
		return fmt.Errorf("node %s: drive %s: it computes on %.20q: want %s, %s or %s", node, d.Name, d.ComputesOn,
			OnDrive, OnCPU, OnCard)
	}
	switch {
	case ReachesAny(d) && len(d.Partitions) > 0:
		return fmt.Errorf("node %s: worker %s is of reach %s and lists %s: list them as sources, or announce reach %s",
			node, d.Name, apiv1.ReachAny, quantity.Of(len(d.Partitions), "partition"), apiv1.ReachHeld)
	case d.Serves != nil && !ReachesAny(d):
		return fmt.Errorf("node %s: drive %s serves one rank alone: announce reach %s", node, d.Name, apiv1.ReachAny)
	case d.Serves != nil && (d.Serves.Job == "" || len(d.Serves.Job) > MaxName):
		return fmt.Errorf("node %s: worker %s serves a rank of a job whose id has %d bytes, want 1 to %d", node, d.Name,
			len(d.Serves.Job), MaxName)
	case len(d.SourceError) > maxSourceError:
		return fmt.Errorf("node %s: worker %s: an error of %d bytes, at most %d", node, d.Name, len(d.SourceError),
			maxSourceError)
	}
	return nil
}

// Bounds of the sources in a status.
const (
	maxSourceError = 4 << 10
	maxIdentity    = 1 << 10
)

// checkSources checks the partitions whose URLs a node's agent announces.
func checkSources(s *apiv1.NodeStatus) error {
	if len(s.Sources) > MaxPartitions {
		return fmt.Errorf("node %s: %d sources, at most %d", s.Name, len(s.Sources), MaxPartitions)
	}
	for _, p := range s.Sources {
		if p == nil || p.Partition == "" {
			return fmt.Errorf("node %s: a source without a partition", s.Name)
		}
		if err := source.ParseLocation(p.Url).CheckAnnounced(); err != nil {
			return fmt.Errorf("node %s: the source of partition %s: %w", s.Name, p.Partition, err)
		}
		switch {
		case len(p.Identity) > maxIdentity:
			return fmt.Errorf("node %s: the source of partition %s has an identity of %d bytes, at most %d", s.Name,
				p.Partition, len(p.Identity), maxIdentity)
		case len(p.Copies) > 0:
			return fmt.Errorf("node %s: the source of partition %s names copies on nodes: the nodes announce these",
				s.Name, p.Partition)
		}
	}
	return nil
}

// Reaches reports whether a live node has a worker of reach any.
func (f *Fleet) Reaches(name string) bool {
	n := f.nodes[name]
	return n != nil && n.alive && slices.ContainsFunc(n.status.Drives, ReachesAny)
}
