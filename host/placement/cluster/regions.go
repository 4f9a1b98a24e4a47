package cluster

import (
	"slices"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/placement"
)

// region is a region of a drive, as its node calls it.
type region struct {
	placement.Ref
	ready bool
	holds []string // partitions that it lists
}

// byFlash groups the drives of a node, in their order: the regions of one drive have its UUID.
func byFlash(drives []*apiv1.Drive) [][]*apiv1.Drive {
	var groups [][]*apiv1.Drive
	for _, d := range drives {
		i := slices.IndexFunc(groups, func(g []*apiv1.Drive) bool { return g[0].GetUuid() == d.GetUuid() })
		if i < 0 || d.GetUuid() == "" {
			groups = append(groups, []*apiv1.Drive{d})
		} else {
			groups[i] = append(groups[i], d)
		}
	}
	return groups
}

// wholeDrive returns a drive of which a node lists some regions, at least one. Their P add up, as they were measured
// together; their room is the same room. The drive takes partitions as long as one of its regions is ready.
func wholeDrive(s *apiv1.NodeStatus, regions []*apiv1.Drive) placement.Drive {
	whole := placement.Drive{Ref: placement.Ref{Node: s.GetName(), Drive: regions[0].GetName()}, Closed: true}
	measured, sum := 0, 0.0
	for _, d := range regions {
		if p := mean(d.GetPRowsPerSecond()); p > 0 {
			measured, sum = measured+1, sum+p
		}
		whole.Closed = whole.Closed && (s.GetDraining() || d.GetState() != "ready")
		whole.FreeBytes = max(whole.FreeBytes, d.GetFreeBytes()) // a region that is not open reports none
		whole.Partitions = append(whole.Partitions, d.GetPartitions()...)
	}
	slices.Sort(whole.Partitions)
	whole.Partitions = slices.Compact(whole.Partitions)
	if measured > 0 { // a region that was not measured yet counts as the others
		whole.RowsPerSecond = sum / float64(measured) * float64(len(regions))
	}
	return whole
}

// Whole returns the name under which Drives lists the drive that has a region. A name that no drive has stays as it is.
func (c *Cluster) Whole(r placement.Ref) placement.Ref {
	if whole, ok := c.whole[r]; ok {
		return whole
	}
	return r
}

// Regions returns the names of all regions of the drive that has a region. A drive of one region, and a name that no
// drive has, are alone.
func (c *Cluster) Regions(r placement.Ref) []placement.Ref {
	var list []placement.Ref
	for _, g := range c.regions[c.Whole(r)] {
		list = append(list, g.Ref)
	}
	if list == nil {
		list = append(list, r)
	}
	return list
}

// via returns the region of a drive through which a partition is written and read: the first that is ready and lists
// the partition, or else the first that is ready.
func (c *Cluster) via(r placement.Ref, partition string) placement.Ref {
	ready := slices.DeleteFunc(slices.Clone(c.regions[c.Whole(r)]), func(g region) bool { return !g.ready })
	for _, g := range ready {
		if slices.Contains(g.holds, partition) {
			return g.Ref
		}
	}
	if len(ready) > 0 {
		return ready[0].Ref
	}
	return r
}
