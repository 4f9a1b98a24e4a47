package fleet

import apiv1 "github.com/millrace/millrace/host/api/v1"

// CopyCount counts the partitions whose copies on drives of live nodes are fewer than wanted.
type CopyCount struct {
	Short int // partitions with fewer copies than wanted, those without any copy included
	Lost  int // partitions without any copy
}

// CountCopies compares the copies on drives of live nodes with the wanted numbers. A copy with other rows or bytes than
// the wanted partition has does not count. Workers without data hold no copies.
func (f *Fleet) CountCopies(wanted []*apiv1.PartitionCopies) CopyCount {
	copies := make(map[string]int, len(wanted))
	byName := make(map[string]*apiv1.PartitionCopies, len(wanted))
	for _, p := range wanted {
		byName[p.Partition] = p
	}
	for _, n := range f.nodes {
		if !n.alive {
			continue
		}
		for name, drives := range n.sources().drives {
			want, have := byName[name], n.partition[name]
			if want != nil && have != nil && have.Rows == want.Rows && have.Bytes == want.Bytes {
				copies[name] += len(drives)
			}
		}
	}
	var c CopyCount
	for _, p := range wanted {
		switch have := copies[p.Partition]; {
		case have == 0:
			c.Lost++
			c.Short++
		case have < int(p.Copies):
			c.Short++
		}
	}
	return c
}
