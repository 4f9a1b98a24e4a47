package lifecycle

import (
	"time"

	"github.com/millrace/millrace/trainmgr/control/record"
)

// Effect is something that the owner of a Machine carries out: one of the types below.
type Effect interface{ effect() }

// Moved says that a job is in another phase, or in the same for another reason.
type Moved struct {
	Job      string
	From, To record.Phase
	Why      string
}

// Refused says that the table of phases does not allow an event. It is a fault of the program.
type Refused struct {
	Job string
	Err error
}

// BeginEpoch has the ledger begin an epoch of a job. Answer with Job.Fail if that fails.
type BeginEpoch struct {
	Job   string
	Epoch uint64
}

// DetachRank has the ledger take back what a rank holds: its launcher is gone.
type DetachRank struct {
	Job  string
	Rank uint32
	Why  string
	Last time.Time // when the launcher called last
}

// EndJob has the owner read what the ledger knows of a job that has ended, hand it to Job.Conclude, and remove the job
// from the ledger.
type EndJob struct {
	Job   string
	Phase record.Phase
}

// WakeRank wakes the calls that wait for a rank: something has come for it, or nothing will.
type WakeRank struct {
	Job  string
	Rank uint32
}

// FindPartitions has the owner look for partitions that match a job and are in none of its generations. Answer with
// Job.PartitionsFound or Job.PartitionsMissing.
type FindPartitions struct{ Job string }

// DropGeneration says that every rank has left a generation: its manifest is needed no more.
type DropGeneration struct {
	Job    string
	Number int
}

// GenerationBegun says that a job goes on with a further generation.
type GenerationBegun struct {
	Job        string
	Generation record.Generation
}

func (Moved) effect()           {}
func (Refused) effect()         {}
func (BeginEpoch) effect()      {}
func (DetachRank) effect()      {}
func (EndJob) effect()          {}
func (WakeRank) effect()        {}
func (FindPartitions) effect()  {}
func (DropGeneration) effect()  {}
func (GenerationBegun) effect() {}
