// Package apiv1 has the messages that launchers, the control plane and storage nodes send each other over the network.
// They are generated from millrace.proto, which is the reference: every message and every rule is described there.
//
// Package apiv1connect has the Connect clients and handlers. Mini-batches travel outside Connect: see
// [NextMiniBatchRequest] and the binding in millrace.proto.
//
// # Versions
//
// Every heartbeat and every description of a node carries [Protocol]. A peer whose version is below [Oldest] is refused
// with an error that says so. A peer with a higher version is accepted, because fields are only ever added.
package apiv1

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
)

// Versions of the messages in millrace.proto.
const (
	Protocol = 1 // of this program
	Oldest   = 1 // that this program still understands
)

// The words of Drive.reach and Grant.reach.
const (
	ReachHeld = "held" // a worker makes the splits of the partitions that it holds; the empty word means the same
	ReachAny  = "any"  // a worker holds no partition and makes any split
)

// OwnWorkerPrefix begins the names of workers that serve one rank, unless their configuration names them. A worker that
// a launcher registers always has it, so that it can take the name of no node.
const OwnWorkerPrefix = "own-"

// The words of RankReport.profiling.
const (
	SideOwn    = "own"    // workers that serve the rank alone
	SideOthers = "others" // all other workers
)

// The words of RankReport.profile_from.
const (
	ProfileMeasured = "measured" // in this job
	ProfileStored   = "stored"   // an earlier job with the same keys measured it
)

// Content types of a mini-batch on the wire, and the paths of the plain HTTP bindings.
const (
	FrameType = "application/vnd.millrace.minibatch"
	ArrowType = "application/vnd.apache.arrow.file"

	MiniBatchPath = "/v1/minibatch"
	PartitionPath = "/v1/partitions/"

	// PartitionHeader, a header of a PUT of a partition, is its description as in a manifest.
	PartitionHeader = "Millrace-Partition"
	// DigestRunsHeader, a header of a PUT and of the answer to a GET of a whole partition, lists the runs of bytes that
	// the digest of its description covers, as partition.FormatRuns writes them.
	DigestRunsHeader = "Millrace-Digest-Runs"
	// MaxPartitionHeader bounds the bytes of PartitionHeader. The row groups of a partition that has very many are left
	// out, because its footer names them too.
	MaxPartitionHeader = 32 << 10
	// DigestHeader, a header of a PUT and a trailer of a GET, is the SHA-256 of a partition's bytes in hex.
	DigestHeader = "Millrace-Sha256"
	// ChecksumHeader, a trailer of a GET of a range of a partition, is the CRC32C (Castagnoli) of exactly the bytes of
	// the answer's body, as 8 hexadecimal digits.
	ChecksumHeader = "Millrace-Crc32c"
	// MaxPartitionRange bounds the bytes of a range of a partition that is answered with its checksum.
	MaxPartitionRange = 16 << 20
)

// PartitionURL returns where a node serves a partition of one of its drives. base is the node's base URL.
func PartitionURL(base, partition, drive string) string {
	var path []string
	for part := range strings.SplitSeq(partition, "/") {
		path = append(path, url.PathEscape(part))
	}
	return base + PartitionPath + strings.Join(path, "/") + "?drive=" + url.QueryEscape(drive)
}

// SelectingRows is in the text of the error unavailable of Control.Attach while the selection of a job's filter is
// being made, which takes as long as the rows are many: a launcher asks again without losing patience.
const SelectingRows = "rows are selected"

// RoomHeldBy is in the text of the error unavailable of Control.Attach, before the ids of other jobs, while these jobs
// hold the room on nodes that the job needs. A launcher asks again without losing patience.
const RoomHeldBy = "for room held by "

// FencedOff is in the text of the error aborted where another launcher has attached a rank of the job: the caller's
// session has ended, and the job goes on. Without it the error says that the job has ended.
const FencedOff = "the session was fenced off"

// FenceHeader is the HTTP header in which a leader of the control plane sends its fence (decimal) to nodes with every
// call. A node that has seen a later fence refuses the call with failed_precondition. A node does not check calls
// without it.
const FenceHeader = "Millrace-Fence"

// TicketHeader is the HTTP header in which a launcher shows a lease's ticket, a [SignedTicket] in base64, with every
// GET of a mini-batch.
const TicketHeader = "Millrace-Ticket"

// EncodeTicket returns the value of TicketHeader for the bytes of a [SignedTicket].
func EncodeTicket(signed []byte) string { return base64.StdEncoding.EncodeToString(signed) }

// Speaks returns nil if this program understands a peer of the given protocol version, and otherwise an error that
// may be sent to the peer.
func Speaks(protocol uint32) error {
	if protocol < Oldest {
		return fmt.Errorf("protocol version %d is too old: %d to %d are understood here; upgrade that side first",
			protocol, Oldest, Protocol)
	}
	return nil
}
