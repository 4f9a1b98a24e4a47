// Package faults makes a drive go wrong by a script: blocks that cannot be read or written, commands that take long,
// digests that do not match, connections that drop, a drive that goes away and comes back.
//
// A [Script] says what goes wrong, and is data: [Parse] reads one from YAML. An [Injector] does it. It sits around what
// a drive is made of, so that neither the controller nor the transport knows of it: Injector.Flash wraps the flash
// (csd.Options.WrapFlash), Injector.Compute the compute device (csd.Options.WrapCompute), Injector.Listener the
// listener that tcp.Target serves. Injector.Replace changes the script under a drive that runs.
//
//	fail:                                    # what the flash does; a transfer is one read or write of the flash
//	  - {operation: read, lba: 1000, blocks: 8, times: 3}
//	  - {operation: write, lba: 2048, status: capacity_exceeded}
//	  - {operation: flush, after: 2, times: 1}
//	delay:                                   # commands, on their way to the drive
//	  - {by: 200ms, opcode: read, times: 5}
//	  - {by: 2s, opcode: 0x18, queue: admin}
//	flip:                                    # digests, from the n-th PDU on that carries one
//	  - {digest: data, pdu: 7}
//	  - {digest: header, pdu: 3, times: 2, queue: io, direction: received}
//	drop:                                    # a connection, with its n-th PDU
//	  - {pdu: 100, queue: 1}
//	  - {pdu: 4, direction: received, torn: true, times: always}
//	away:                                    # no connection is served for a while, from the n-th command on
//	  - {for: 5s, command: 1000}
//
// after is the number of matches that pass before the first one that goes wrong, and times the number of matches that
// go wrong then: a number, or always. Without times, fail and delay go wrong always, and the others once. queue is
// admin, io or a number; without it every queue and the connection's first PDUs are meant. direction is as the drive
// sees it; without it, sent.
//
// The faults of a script depend on counts only: the same PDUs and transfers in the same order meet the same faults.
//
// # How it follows a connection
//
// A connection is a stream of PDUs, and the common header of each has its length. Bytes pass as they arrive, and are
// changed in passing. Only a delayed command is taken out as a whole; it is put back between two later PDUs when its
// time has come, and the commands behind it pass meanwhile. A connection holds at most 8 MiB of delayed commands;
// further ones pass at once. A stream that is not NVMe/TCP passes unchanged from the point where that shows.
//
// A drive that is away resets connections as soon as they are made. It keeps its port, which another process could take
// otherwise.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Injector.mu guards the script, the counters of its rules and the set
// of connections. A connection has one reader, and its writers take turns.
//
// # Errors
//
// Parse returns an [Error] with line and column for each mistake, joined. Errors of a wrapped flash, and of reading and
// writing a dropped connection, wrap [ErrInjected].
//
// # Debugging
//
// Options.Logger records each fault; Injector.Stats counts them.
package faults
