package placement

import (
	"cmp"
	"slices"
)

// Assessment has the faults of a placement, and its speed.
type Assessment struct {
	Partitions int   `json:"partitions"`
	Rows       int64 `json:"rows"`
	Fewest     int   `json:"fewest_copies"` // Every partition has at least this number.
	// Short are the partitions with fewer copies than wanted. A partition without copies is lost.
	Short []Short `json:"incomplete_partitions"`
	// OneNode are the partitions whose copies all lie on one node: without the node they are lost.
	OneNode []string `json:"single_node_partitions"`
	// Spreadable are those of OneNode of which two copies or more are wanted, while another node has a drive. Replicate
	// spreads them.
	Spreadable []string `json:"spreadable_partitions"`
	// RowsPerSecond is what the drives sustain together over a whole epoch, if every partition's rows are shared
	// between its holders so that they finish together as nearly as possible. 0 if no P is known.
	RowsPerSecond float64 `json:"sustained_rows_per_second"`
	Last          Ref     `json:"slowest_drive"` // the drive that ends last
}

// Short is a partition that lacks copies.
type Short struct {
	Partition string `json:"partition"`
	Copies    int    `json:"copies"`
	Wanted    int    `json:"required_copies"`
}

// Check assesses a placement. partitions are all that are wanted, those too that lie on no drive.
func Check(drives []Drive, partitions []Partition) (Assessment, error) {
	c, err := open(drives, partitions)
	if err != nil {
		return Assessment{}, err
	}
	r := Assessment{Partitions: len(partitions), Short: []Short{}, OneNode: []string{}, Spreadable: []string{}}
	nodes := map[string]bool{}
	for _, s := range c.drives {
		nodes[s.Node] = nodes[s.Node] || !s.Closed
	}
	for i, p := range partitions {
		holders := c.holders(p.Name)
		r.Rows += p.Rows
		if i == 0 || len(holders) < r.Fewest {
			r.Fewest = len(holders)
		}
		if len(holders) < p.Copies {
			r.Short = append(r.Short, Short{Partition: p.Name, Copies: len(holders), Wanted: p.Copies})
		}
		if !onOneNode(holders) {
			continue
		}
		r.OneNode = append(r.OneNode, p.Name)
		if p.Copies > 1 && len(holders) > 1 && hasOtherNode(nodes, holders[0].Node) {
			r.Spreadable = append(r.Spreadable, p.Name)
		}
	}
	slices.SortFunc(r.Short, func(a, b Short) int { return cmp.Compare(a.Partition, b.Partition) })
	slices.Sort(r.Spreadable)
	slices.Sort(r.OneNode)
	longest := 0.0
	for _, s := range c.shareRows(partitions) {
		if s.load > longest {
			longest, r.Last = s.load, s.Ref
		}
	}
	known := slices.ContainsFunc(drives, func(d Drive) bool { return d.RowsPerSecond > 0 })
	if longest > 0 && known {
		r.RowsPerSecond = float64(r.Rows) / longest
	}
	return r, nil
}

// hasOtherNode reports whether a node other than the given one has a drive that takes partitions.
func hasOtherNode(open map[string]bool, node string) bool {
	for name, takes := range open {
		if takes && name != node {
			return true
		}
	}
	return false
}

// shareRows shares each partition's rows between its holders so that they finish together, as nearly as moving rows
// from the drive that finishes last can make it. It returns the drives with their loads.
func (c *cluster) shareRows(partitions []Partition) []*state {
	type part struct {
		holders []*state
		share   []float64 // rows of each holder
	}
	var parts []part
	for _, s := range c.drives {
		s.load = 0
	}
	for _, p := range partitions {
		h := c.holders(p.Name)
		if len(h) == 0 {
			continue
		}
		sum := 0.0
		for _, s := range h {
			sum += s.p
		}
		share := make([]float64, len(h))
		for i, s := range h {
			share[i] = float64(p.Rows) * s.p / sum
			s.load += share[i] / s.p
		}
		if len(h) > 1 {
			parts = append(parts, part{holders: h, share: share})
		}
	}
	// Each round moves rows of one partition so that its holders finish together as nearly as its rows allow. The
	// greatest load never grows.
	for range 50 {
		moved := false
		for _, p := range parts {
			lo, hi := 0, 0
			for i, s := range p.holders {
				if s.load < p.holders[lo].load {
					lo = i
				}
				if p.share[i] > 0 && (p.share[hi] <= 0 || s.load > p.holders[hi].load) {
					hi = i
				}
			}
			a, b := p.holders[hi], p.holders[lo]
			if lo == hi || a.load-b.load <= 1e-9*a.load {
				continue
			}
			// rows x with a.load - x/a.p = b.load + x/b.p
			x := min(p.share[hi], (a.load-b.load)/(1/a.p+1/b.p))
			p.share[hi] -= x
			p.share[lo] += x
			a.load -= x / a.p
			b.load += x / b.p
			moved = moved || x > 0
		}
		if !moved {
			break
		}
	}
	return c.drives
}
