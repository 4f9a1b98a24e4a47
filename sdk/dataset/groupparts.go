package dataset

import "iter"

// GroupPart is the rows of one row group that are in one split.
type GroupPart struct {
	Partition int   // index into the manifest
	Group     int   // the row group, counted from 0
	First     int64 // the part's first row, counted from the row group's
	Rows      int64
	Of        int64 // rows of the row group
}

// IsWhole reports whether the split has all rows of the row group.
func (g GroupPart) IsWhole() bool { return g.Rows == g.Of }

// GroupParts yields the parts of row groups that the plan's splits have, split after split in the plan's order. m is
// the manifest that the plan was made of, without a selection. The time is linear in splits and row groups with
// ShuffleNone; in another order the row groups before a split are walked for every split.
func (p *Plan) GroupParts(m *Manifest) iter.Seq[GroupPart] {
	return func(yield func(GroupPart) bool) {
		partition, group, first := -1, 0, int64(0) // the row group, and its first row in the partition
		for s := range p.All() {
			if s.Partition != partition || s.First < first {
				partition, group, first = s.Partition, 0, 0
			}
			groups, end := m.Partitions[partition].RowGroups, s.First+s.Rows
			for row := s.First; row < end; {
				for first+groups[group] <= row {
					first += groups[group]
					group++
				}
				n := min(first+groups[group], end) - row
				if !yield(GroupPart{Partition: partition, Group: group, First: row - first, Rows: n, Of: groups[group]}) {
					return
				}
				row += n
			}
		}
	}
}
