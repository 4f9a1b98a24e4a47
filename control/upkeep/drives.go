package upkeep

import (
	"maps"
	"slices"

	"github.com/millrace/millrace/control/ledger"
)

// storeDrive is the name of the ledger's entry for the partitions that a node's agent was given by URL. No drive has
// an empty name.
const storeDrive = ""

// loseDrives takes all drives of a node from the ledger's work.
func (k *Keeper) loseDrives(n *node, why string) {
	for _, d := range slices.Sorted(maps.Keys(n.drives)) {
		k.changeDrive(n, d, Lost, why)
	}
}

// changeDrive changes the state of a drive that the ledger knows.
func (k *Keeper) changeDrive(n *node, drive string, to DriveState, why string) {
	if from := n.drives[drive]; from != to {
		n.drives[drive] = to
		k.emit(DriveChanged{ledger.DriveID{Node: n.name, Name: drive}, from, to, why})
	}
}

// compareDrives compares the states in a report with those that the ledger knows, once the drives are listed.
func (k *Keeper) compareDrives(n *node) {
	if !n.listed {
		return
	}
	for _, d := range n.report.Drives {
		switch was, ok := n.drives[d.ID.Name]; {
		case !ok || was == d.State:
		case was == Broken: // The ledger takes the drive back when the drives are listed again.
			n.listed = false
			k.rescan(n)
		default:
			k.changeDrive(n, d.ID.Name, d.State, d.Why)
		}
	}
}

// listDrives puts all drives of a node into the ledger, and removes those that the node does not list any more.
func (k *Keeper) listDrives(n *node) {
	list := make([]ledger.Drive, 0, len(n.report.Drives)+1)
	has := map[string]bool{}
	for _, d := range n.report.Drives {
		v := d.Drive
		v.Draining = d.State != Ready
		if v.Reach == ledger.Any {
			v.Partitions = n.ownFiles()
		}
		list = append(list, v)
		has[v.ID.Name] = true
	}
	if n.report.Sources {
		list = append(list, ledger.Drive{ID: ledger.DriveID{Node: n.name, Name: storeDrive}, Reach: ledger.Source})
		has[storeDrive] = true
	}
	for _, d := range slices.Sorted(maps.Keys(n.drives)) {
		if !has[d] {
			k.emit(RemoveDrive{ledger.DriveID{Node: n.name, Name: d}})
			delete(n.drives, d)
		}
	}
	if len(list) > 0 {
		k.emit(ListDrives{n.name, list})
	}
	for _, v := range list {
		n.drives[v.ID.Name] = Ready
	}
	for _, d := range n.report.Drives {
		if n.drives[d.ID.Name] = d.State; d.State == Broken {
			k.emit(DriveChanged{d.ID, Draining, Broken, d.Why})
		}
	}
	n.listed, n.enlist = true, true
}

// ownFiles returns the partitions that the node's workers have in files of their own machine.
func (n *node) ownFiles() []string {
	files := map[string]bool{}
	for _, p := range n.pairs {
		for _, f := range p.ownFiles {
			files[f] = true
		}
	}
	return slices.Sorted(maps.Keys(files))
}

// enlistWorkers enlists a node's workers of reach Any for the jobs that the node is prepared for.
func (k *Keeper) enlistWorkers(n *node, t *jobTable) {
	n.enlist = false
	if !n.report.reaches() {
		return
	}
	for i := range t.jobs {
		j := &t.jobs[i]
		if !n.preparedFor(j) {
			continue
		}
		for _, d := range n.report.Drives {
			state := n.drives[d.ID.Name]
			if d.Reach == ledger.Any && (state == Ready || state == Draining) && j.employsWorker(&d) {
				k.emit(Enlist{j.ID, d.ID, d.Serves, true})
			}
		}
	}
}

// preparedFor reports whether a node is prepared for every edition of a job that nodes have been asked to prepare.
func (n *node) preparedFor(j *Job) bool {
	some := false
	for _, e := range j.Editions {
		if e.Pass || !e.Begun {
			continue
		}
		if p := n.pairs[e.Digest]; p == nil || !p.prepared {
			return false
		}
		some = true
	}
	return some
}

// Withdrawn records that a job gives its room away: its workers of reach Any are enlisted again when they are prepared
// again.
func (k *Keeper) Withdrawn(job string) {
	for _, name := range k.names() {
		n := k.nodes[name]
		for _, d := range n.report.Drives {
			if state := n.drives[d.ID.Name]; d.Reach == ledger.Any && (state == Ready || state == Draining) {
				k.emit(Enlist{job, d.ID, d.Serves, false})
			}
		}
	}
}
