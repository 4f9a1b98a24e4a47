// Package tcp carries NVMe over TCP (NVM Express TCP Transport Specification 1.0): a Target, which serves subsystems to hosts, and a
// Host, the initiator, which implements nvme.Conn.
//
// The PDUs are in package pdu below this one, the words of Fabrics in nvme/fabrics, and everything that a command means
// in nvme/controller; here is what moves commands and their data.
//
// # The target
//
// A connection is a queue. One goroutine receives its PDUs; commands run in workers of the connection, which are started when they are
// needed, at most two for each place in the queue. Data of up to 8 KiB comes in the capsule of its command; for more the
// host is asked, all of a command's data with one R2T. Data buffers are taken from a budget of the connection, in the
// order of the commands, before the host is asked or the flash is read, so memory does not grow with what hosts send. An
// answer may be data with the success flag instead of a completion, where the host turned flow control off and there is
// no result.
//
// A breach of the protocol ends the connection with a termination request that names the fatal error status and the
// field; a malformed command gets its status; a data digest that does not match fails its command with Transient Transport Error.
// A PDU, a write or data that was asked for may take TargetOptions.Stall, a connection may take TargetOptions.Handshake
// until Connect, and a host that is silent for longer than its keep alive timeout loses its association.
//
// A connection counts for one of four shares, each with its limit: those before Connect, those whose host must
// authenticate and has not yet, those of discovery, and those of hosts that may use a drive. Where one of the first
// three is full, the oldest connection of the peer that holds most of the share makes room; where the last is full, the
// next is refused. So strangers take no place of hosts.
//
// The admin queue's connection is the association: when it ends, so does everything. The end of an I/O queue's
// connection ends the commands of that queue.
//
// # The initiator
//
// A Host has one association at a time. When any of its connections fails all are closed, every command ends, and a
// new association is made, with a backoff. Commands that are idempotent in any association, those to blocks and questions, are then sent
// again without the caller noticing; others fail with ErrLost. Commands that were not sent yet wait for the new association,
// whatever they are, unless they are bound to one (nvme.InAssociation). A write is sent again too, as kernels do: the drive ended the old
// association when its connection was reset, but a drive on a network that delays packets for longer than the backoff might
// still do the first write after the second.
//
// A command ends before its call returns, whatever happens, as its buffer and identifier are in use until then: when its
// context ends or it takes too long the drive is asked to abort it, and when that does not help the association is
// given up. In steady state a command allocates nothing.
//
// # Authentication
//
// With TargetOptions.Auth a host must prove by DH-HMAC-CHAP (package auth) that it holds its key, on every queue: Connect
// says so in its result, and until it has, every other command fails with Authentication Required. Discovery is served
// without. Messages are worked on by workers, a few at a time over all connections (AuthOptions.Exchanges), so that hosts that
// authenticate with large groups neither delay others nor take every processor. A Host with a DialOptions.Key does what the drive demands; one with a ControllerKey demands it of the drive too. A
// reconnect authenticates anew, and failing at that is final. Data is not encrypted: TLS is not offered.
//
// # Who writes
//
// A connection has no writing goroutine that everybody hands over to. A sender that finds nobody writing writes, for
// itself and for whoever comes meanwhile; a goroutine that receives never does, as two sides that both write and do not read
// would wait for each other.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Connection.mu and link.mu guard what their structs say; slots and
// commands belong to one goroutine at a time, and pass from one to another through atomics, channels and the outbox.
//
// # Errors
//
// A Host's errors wrap nvme.Status, ErrLost, ErrTimeout, nvme.ErrClosed, the context's, or the network's. Connect is
// explained in words: an unknown subsystem, a host that is not on the allow-list. When a connection is lost, the host
// first reads what the drive sent before: a termination request that says why explains the loss better than a write
// that failed.
//
// # Debugging
//
// TargetOptions.Logger and DialOptions.Logger get who comes and goes, and why connections ended; Host.Stats counts
// reconnects, requeued commands, digest errors and aborts.
package tcp
