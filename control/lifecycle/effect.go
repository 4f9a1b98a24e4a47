package lifecycle

import (
	"time"

	"github.com/millrace/millrace/control/record"
)

// Effect is something that the owner of a Machine carries out: one of the types below.
type Effect interface{ effect() }

// Moved reports that a job is in another phase, or in the same phase for another reason.
type Moved struct {
	Job      string
	From, To record.Phase
	Why      string
}

// Refused reports an event that the table of phases does not allow. Such an event is a fault of the program.
type Refused struct {
	Job string
	Err error
}

// BeginEpoch has the ledger begin an epoch of a job. Answer with Job.Fail if that fails.
type BeginEpoch struct {
	Job   string
	Epoch uint64
}

// DetachRank has the ledger take back the leases of a rank whose launcher is gone.
type DetachRank struct {
	Job  string
	Rank uint32
	Why  string
	Last time.Time // when the launcher called last
}

// EndJob has the owner read the ledger's status of a job that has ended, hand the status to Job.Conclude, and remove
// the job from the ledger.
type EndJob struct {
	Job   string
	Phase record.Phase
}

// WakeRank wakes the calls that wait for a rank: the rank has news, or will never have any.
type WakeRank struct {
	Job  string
	Rank uint32
}

// FindPartitions has the owner look for partitions that match a job and are in none of its editions. Answer with
// Job.PartitionsFound or Job.PartitionsMissing.
type FindPartitions struct{ Job string }

// DropEdition reports that every rank has left an edition, whose manifest is no longer needed.
type DropEdition struct {
	Job    string
	Number int
}

// EditionBegun reports that a job goes on with a further edition.
type EditionBegun struct {
	Job     string
	Edition record.Edition
}

func (Moved) effect()          {}
func (Refused) effect()        {}
func (BeginEpoch) effect()     {}
func (DetachRank) effect()     {}
func (EndJob) effect()         {}
func (WakeRank) effect()       {}
func (FindPartitions) effect() {}
func (DropEdition) effect()    {}
func (EditionBegun) effect()   {}
