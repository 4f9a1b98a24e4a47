// Package tcp carries NVMe over TCP (NVM Express TCP Transport Specification 1.0). It has a Target, which serves
// subsystems to hosts, and a Host, the initiator, which implements nvme.Conn.
//
// Package pdu below this one has the PDUs, package stream takes them from a connection and sends them, and package
// buffer has the memory for data. Package discovery asks a discovery controller. Package nvme/fabrics has the commands
// and structures of Fabrics, and package nvme/controller executes the commands. This package moves commands and their
// data.
//
// # The target
//
// A connection is a queue. One goroutine receives its PDUs. Commands run in other goroutines of the connection, the
// runners; they are started when they are needed, at most two for each entry of the queue. Data of up to 8 KiB arrives
// in the capsule of its command; for more, the target requests all of a command's data with one R2T. Data buffers are
// taken from a budget of the connection, in the order of the commands, before the data is requested or the flash is
// read, so memory does not grow with what hosts send. Where the host turned flow control off and a read has no result,
// the success flag of the data replaces the completion.
//
// A breach of the protocol ends the connection with a termination request that names the fatal error status and the
// field. A malformed command gets its status. A data digest that does not match fails its command with Transient
// Transport Error. TargetOptions.Stall bounds the time of a PDU, of a write, and of requested data;
// TargetOptions.Handshake bounds the time until Connect; and a host that is silent for longer than its keep alive
// timeout loses its association.
//
// A connection is in one of several states, each with its own limit: before Connect, waiting for its host to
// authenticate, in a discovery association, or a queue of a drive that may be used. Where there are too many in one of
// the first three states, the oldest connection of the peer that has most of them is closed; where there are too many
// in the last, the next is refused. So hosts that have proven nothing take no place of hosts that have.
// docs/architecture.md shows the states.
//
// The admin queue's connection is the association: when it ends, the association ends with all its queues. When the
// connection of an I/O queue ends, the commands of that queue end.
//
// # The initiator
//
// A Host has one association at a time. When one of its connections fails, all are closed, every command ends, and a
// new association is made after a backoff. Commands that are idempotent in any association (commands to blocks, and
// queries) are then sent again, and the caller does not notice; others fail with ErrLost. Commands that were not sent
// yet wait for the new association, unless they are bound to one (Host.InAssociation). A write is sent again too, as
// kernels do: the drive ended the old association when its connection was reset. But on a network that delays packets
// for longer than the backoff, a drive might execute the first write after the second.
//
// A command ends before its call returns, because its buffer and identifier are in use until then. When the context of
// a command ends or the command takes too long, the drive is asked to abort it; if that does not end the command, the
// association is given up. In steady state a command allocates nothing.
//
// # Authentication
//
// With TargetOptions.Auth a host must prove by DH-HMAC-CHAP (package auth), on every queue, that it holds its key. The
// result of Connect says so; until the host has authenticated, every other command fails with Authentication Required.
// Discovery needs no authentication. Runners process the messages, at most AuthOptions.Exchanges at a time over all
// connections, so that hosts that authenticate with large groups neither delay others nor take every processor. A Host
// with a DialOptions.Key authenticates where the drive demands it; a Host with a ControllerKey demands that the drive
// authenticates too. Each new association authenticates again, and a failure then is final. Data is not encrypted: TLS
// is not offered.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Connection.mu and link.mu guard the fields below them. A queue's
// entries and a target's commands belong to one goroutine at a time, and pass from one to another through atomics,
// channels and the outbox.
//
// # Errors
//
// A Host's errors wrap nvme.Status, ErrLost, ErrTimeout, nvme.ErrClosed, the context's error, or the network's. A
// refused Connect is explained in words: an unknown subsystem, a host that is not on the allow-list. When a connection
// is lost, the host first reads what the drive sent before, because a termination request explains the loss better than
// the error of a write.
//
// # Debugging
//
// TargetOptions.Logger and DialOptions.Logger record hosts that connect and disconnect, and why connections ended.
// Host.Stats counts reconnects, requeued commands, digest errors and aborts.
package tcp
