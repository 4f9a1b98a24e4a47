package machine

import (
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/lifecycle"
)

// Effect is an action that the owner of a Machine carries out. Its type is one of the types below.
type Effect interface{ effect() }

// Life holds an effect of a job's life that the owner carries out: Moved, Refused, EndJob, FindPartitions, DropEdition
// or EditionBegun of package lifecycle. For EndJob call Job.Conclude, and then Machine.RemoveFromLedger.
type Life struct{ lifecycle.Effect }

// Detached reports that the leases of a rank whose launcher is gone came back. Err is a fault of the program, or nil.
type Detached struct {
	lifecycle.DetachRank
	Err error
}

// Revoked reports that a lease of a rank was taken back.
type Revoked struct{ ledger.Revocation }

// Adopted reports that a launcher listed the leases of an earlier leader.
type Adopted struct {
	Job              string
	Rank             uint32
	Adopted, Refused int // leases
}

// Returned reports a lease that ended before all of its numbers were delivered. The node of the lease must refuse the
// tickets of the lease.
type Returned struct{ ledger.Lease }

// Delivered reports that every mini-batch of an epoch is acknowledged.
type Delivered struct {
	Job   string
	Epoch uint64
}

// Answered is the answer to a Lease call that waited. An Err that is not nil replaces the answer.
type Answered struct {
	Call   uint64
	Answer LeaseAnswer
	Err    error // A fault of the program prevented the end of the leases. Nil means that the leases ended.
}

func (Life) effect()      {}
func (Detached) effect()  {}
func (Revoked) effect()   {}
func (Adopted) effect()   {}
func (Returned) effect()  {}
func (Delivered) effect() {}
func (Answered) effect()  {}
