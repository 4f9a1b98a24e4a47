package upkeep

import (
	"fmt"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/sdk/dataset"
)

// Effect is what the owner has to carry out: Prepare, Finish, Drain, ListDrives, DriveChanged, RemoveDrive, Enlist,
// NeedRoom or Reply.
type Effect interface{ effect() }

// Prepare gives a node what it needs for an edition of a job. Keeper.Prepared takes the answer.
type Prepare struct {
	Call   uint64
	Node   string
	Job    string
	Digest dataset.Digest
}

// Finish has a node forget an edition that no job uses. Keeper.Finished takes the answer.
type Finish struct {
	Call   uint64
	Node   string
	Digest dataset.Digest
}

// Drain has a node refuse new splits, or accept them again. Keeper.Drained takes the answer.
type Drain struct {
	Call        uint64
	Node        string
	Incarnation string
	Drain       bool
}

// ListDrives puts all drives of a node into the ledger. The owner adds the partitions that holders and stores have. A
// worker of reach Any comes with the partitions in files of its own machine.
type ListDrives struct {
	Node   string
	Drives []ledger.Drive
}

// DriveChanged reports another state of a drive that the ledger knows. Why is the node's own word for the state, or
// why the drive is lost.
type DriveChanged struct {
	Drive    ledger.DriveID
	From, To DriveState
	Why      string
}

// RemoveDrive removes a drive from the ledger. The ledger may not know the drive.
type RemoveDrive struct{ Drive ledger.DriveID }

// Enlist enlists a worker of reach Any in the ledger for a job, or takes it off the job's list.
type Enlist struct {
	Job    string
	Worker ledger.DriveID
	Serves *ledger.RankRef // the only rank that the worker serves; nil: every rank
	Ready  bool
}

// NeedRoom reports that a node had no room for a job, and which other jobs the node is prepared for.
type NeedRoom struct {
	Node, Job string
	Holders   []string
}

// Reply answers a call of Ask or Dismiss. Err is nil if the node is prepared, or if the job needs the node no more.
type Reply struct {
	Call uint64
	Err  error
}

func (Prepare) effect()      {}
func (Finish) effect()       {}
func (Drain) effect()        {}
func (ListDrives) effect()   {}
func (DriveChanged) effect() {}
func (RemoveDrive) effect()  {}
func (Enlist) effect()       {}
func (NeedRoom) effect()     {}
func (Reply) effect()        {}

// Outcome is how a call of a node ended.
type Outcome uint8

// The outcomes.
const (
	Done    Outcome = iota
	NoRoom          // The node has no room for another job now.
	Refused         // Another call would have the same answer.
	Failed          // Another call may succeed.
)

// Result is the answer of a node to a call, or the error of a node that was not reached.
type Result struct {
	Outcome Outcome
	Err     error // nil if the call is done
	// OwnFiles lists the partitions that the node's workers have in files of their own machine, named as in
	// ledger.Epoch.Partitions. Only the answer to Prepare has them.
	OwnFiles []string
}

// AwayError answers a job that asks for a node whose heartbeats do not arrive.
type AwayError struct{ Node string }

func (e *AwayError) Error() string {
	return fmt.Sprintf("node %s: its heartbeats do not arrive", e.Node)
}
