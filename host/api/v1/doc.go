// Package apiv1 is what launchers, the control plane and storage nodes say to each other over the network, generated from
// millrace.proto, which is the reference: every message and every rule is described there.
//
// Package apiv1connect has the Connect clients and handlers. Mini-batches travel outside Connect: see
// [NextMiniBatchRequest] and the binding in millrace.proto.
//
// # Versions
//
// Every heartbeat and every description of a node carries [Protocol]. A peer that speaks less than [Oldest] is refused, in
// words; one that speaks more is taken, since fields are only ever added.
package apiv1

import "fmt"

// Versions of the words in millrace.proto.
const (
	Protocol = 1 // spoken here
	Oldest   = 1 // still understood
)

// Content types of a mini-batch on the wire, and the paths of the plain HTTP bindings.
const (
	FrameType = "application/vnd.millrace.minibatch"
	ArrowType = "application/vnd.apache.arrow.file"

	MiniBatchPath = "/v1/minibatch"
	PartitionPath = "/v1/partitions/"

	// Of a PUT of a partition: its description as in a manifest, and where the bytes begin that the footer's digest covers.
	PartitionHeader = "Millrace-Partition"
	FooterAtHeader  = "Millrace-Footer-At"
	// MaxPartitionHeader is the most bytes of PartitionHeader. The row groups of a partition that has very many are left out: its footer names them too.
	MaxPartitionHeader = 32 << 10
	// DigestHeader, a header of a PUT and a trailer of a GET, is the SHA-256 of a partition's bytes in hex.
	DigestHeader = "Millrace-Sha256"
)

// FenceHeader is the HTTP header in which a leader of the control plane tells nodes its fence (decimal) with every call.
// A node that has seen a later one refuses the call with failed_precondition. Calls without it are not looked at.
const FenceHeader = "Millrace-Fence"

// TicketHeader is the HTTP header in which a launcher shows a lease's ticket, a [SignedTicket] in base64, with every
// GET of a mini-batch.
const TicketHeader = "Millrace-Ticket"

// Speaks returns an error, fit to be sent to the peer, unless a peer of the given protocol version is understood.
func Speaks(protocol uint32) error {
	if protocol < Oldest {
		return fmt.Errorf("protocol version %d is too old: %d to %d are understood here; upgrade that side first", protocol, Oldest, Protocol)
	}
	return nil
}
