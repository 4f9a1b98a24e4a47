package upkeep

import (
	"slices"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/sdk/dataset"
)

// IsPrepared reports whether a node that lives is prepared for an edition.
func (k *Keeper) IsPrepared(node string, d dataset.Digest) bool {
	n := k.nodes[node]
	return n != nil && n.alive && n.pairs[d] != nil && n.pairs[d].prepared
}

// Takes reports whether leases may be granted on a drive, as far as its node reports.
func (k *Keeper) Takes(drive ledger.DriveID) bool {
	n := k.nodes[drive.Node]
	return n != nil && n.drives[drive.Name] == Ready
}

// Failure is why a node is not prepared for an edition.
type Failure struct {
	Node   string
	NoRoom bool
	Err    error
}

// Failures lists the live nodes that could not be prepared for an edition when they were asked last, by name.
func (k *Keeper) Failures(d dataset.Digest) (list []Failure) {
	for _, name := range k.names() {
		n := k.nodes[name]
		if p := n.pairs[d]; n.alive && p != nil && !p.prepared && p.last.Err != nil {
			list = append(list, Failure{name, p.last.Outcome == NoRoom, p.last.Err})
		}
	}
	return list
}

// LacksRoom reports whether a node refused one of a job's editions for lack of room when it was asked last.
func (k *Keeper) LacksRoom(editions []dataset.Digest) bool {
	for _, n := range k.nodes {
		if n.lacksRoomFor(editions) {
			return true
		}
	}
	return false
}

// RoomHolders names the other jobs that hold room on the nodes that had no room for a job's editions, in their order.
func (k *Keeper) RoomHolders(job string, editions []dataset.Digest) []string {
	t := newJobTable(k.config.Jobs())
	var jobs []string
	for _, n := range k.nodes {
		if n.lacksRoomFor(editions) {
			jobs = append(jobs, n.holders(job, &t)...)
		}
	}
	slices.Sort(jobs)
	return slices.Compact(jobs)
}

// OwnFiles returns a function that reports whether a live node that is prepared for an edition has a partition in files
// of its own machine.
func (k *Keeper) OwnFiles(d dataset.Digest) func(partition string) bool {
	var with [][]string
	for _, n := range k.nodes {
		if p := n.pairs[d]; n.alive && p != nil && p.prepared && len(p.ownFiles) > 0 {
			with = append(with, n.ownFiles())
		}
	}
	return func(partition string) bool {
		return slices.ContainsFunc(with, func(files []string) bool {
			_, found := slices.BinarySearch(files, partition)
			return found
		})
	}
}
