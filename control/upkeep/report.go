package upkeep

import (
	"slices"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/sdk/dataset"
)

// DriveState is the state of a drive as far as the ledger is concerned.
type DriveState string

// The states of drives.
const (
	Ready    DriveState = "ready"
	Draining DriveState = "draining" // Leases end, and none is granted.
	Broken   DriveState = "failed"
	Lost     DriveState = "lost" // The node is dead, or was restarted.
)

// Report is what the last heartbeat of a node said.
type Report struct {
	Node        string
	Incarnation string
	Drives      []Drive
	Sources     bool             // The node's agent announces URLs of partitions.
	Jobs        []dataset.Digest // for which the node is prepared
	Owned       bool             // A launcher registered the node: its worker ends with its job.
	SelfDrains  bool             // The node refuses new splits.
	DrainAsked  bool             // An operator, or the pool of workers, wants the node drained.
}

// Drive is a drive or a worker of a node. Its list of partitions is empty.
type Drive struct {
	ledger.Drive
	State DriveState
	Why   string // the node's own word for the state
}

// reaches reports whether a worker of the node can make splits of partitions that it does not hold.
func (r *Report) reaches() bool {
	return slices.ContainsFunc(r.Drives, func(d Drive) bool { return d.Reach == ledger.Any })
}

// serves reports whether the node's workers of reach Any have to be prepared for a job.
func (r *Report) serves(j *Job) bool {
	return slices.ContainsFunc(r.Drives, func(d Drive) bool {
		switch {
		case d.Reach != ledger.Any:
			return false
		case d.Serves != nil:
			return d.Serves.Job == j.ID && j.Makers&ledger.NoOwn == 0
		}
		return j.NeedsWorkers && j.Makers&ledger.NoAny == 0
	})
}
