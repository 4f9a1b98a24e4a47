package protocol

import (
	"time"

	"github.com/millrace/millrace/sdk/dataset"
)

// Effect is something that the owner of a Machine carries out: one of the types below.
type Effect interface{ effect() }

// Purpose says what a lease call is for.
type Purpose uint8

// The purposes of lease calls. One call of each is under way at a time.
const (
	AskLeases    Purpose = iota // asks for leases, and names those that the rank holds
	ReportLeases                // only names the leases that the rank holds
	AskEpoch                    // asks for the next epoch
)

// CallLease has the owner make a lease call. LeaseRequest returns the content of each attempt. The owner answers with
// LeaseAnswered or LeaseFailed.
type CallLease struct{ Purpose Purpose }

// SendAcknowledgements has the owner acknowledge mini-batches. Answer with Acknowledged or AcknowledgeFailed.
type SendAcknowledgements struct {
	Session []byte
	Epoch   uint64
	Numbers []dataset.Range
}

// Release has the owner give leases back, or all of them if the reason is ReasonDetach or ReasonDone. Answer with
// Released or ReleaseFailed.
type Release struct {
	Session []byte
	Leases  []uint64
	Reason  string
}

// Attach has the owner attach again as the same rank. Answer with Attached or AttachFailed.
type Attach struct{}

// Granted reports a lease that the rank holds now. StartPiece names it when its piece may start.
type Granted struct{ Grant }

// CancelPiece has the owner end the piece of a lease, or forget it if it has not started or has ended.
type CancelPiece struct {
	Lease uint64
	Why   Cancellation
}

// Cancellation says why a piece is cancelled.
type Cancellation uint8

// The reasons to cancel a piece.
const (
	Delivered      Cancellation = iota // the ledger knows every mini-batch of the lease
	Revoked                            // the leader has taken the lease back
	Stuck                              // the rank gives the lease back for the sake of the mini-batch that is due
	NothingMissing                     // every mini-batch of the epoch has come
)

// RenewTicket has the owner show another ticket for a lease from now on.
type RenewTicket struct {
	Lease  uint64
	Ticket []byte
}

// AcknowledgeAgain reports that the epoch's acknowledgements are sent once more.
type AcknowledgeAgain struct {
	Epoch uint64
	Runs  int
}

// TrainerWaits reports that the trainer has waited for mini-batches for long, and for what the control plane waits.
type TrainerWaits struct {
	For  string
	Long time.Duration
}

// Wake wakes the callers that wait for a state of the machine.
type Wake struct{}

func (CallLease) effect()            {}
func (SendAcknowledgements) effect() {}
func (Release) effect()              {}
func (Attach) effect()               {}
func (Granted) effect()              {}
func (CancelPiece) effect()          {}
func (RenewTicket) effect()          {}
func (AcknowledgeAgain) effect()     {}
func (TrainerWaits) effect()         {}
func (Wake) effect()                 {}
