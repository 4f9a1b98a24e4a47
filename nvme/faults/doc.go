// Package faults makes a drive go wrong by a script: blocks that cannot be read or written, commands that take long,
// digests that do not match, connections that drop, a drive that goes away and comes back.
//
// A [Script] says what goes wrong, and is data: [Parse] reads one from YAML. An [Injector] does it. It sits around what a
// drive is made of, so that neither the controller nor the transport knows of it: Injector.Flash wraps the flash
// (csd.Options.WrapFlash), Injector.Compute the compute device (csd.Options.WrapCompute), Injector.Listener the listener
// that tcp.Target serves. Injector.Replace changes the script under a drive that runs.
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
// after is how many matches pass before the first that goes wrong, times how many go wrong then: a number, or always; without
// it always for fail and delay, and once for the others. queue is
// admin, io or a number, and without it every queue and the connection's first PDUs are meant. direction is as the
// drive sees it, sent without it.
//
// What a script injects depends on counts only: the same PDUs and transfers in the same order meet the same faults.
//
// # How it follows a connection
//
// A connection is a stream of PDUs, and the common header of each tells its length. Bytes are passed on as they come and changed
// in passing; only a command that is delayed is taken out whole and put back between two later PDUs when its time has
// come, so that those behind it pass. A connection holds at most 8 MiB of such commands, and lets more pass at once. A
// stream that is not NVMe/TCP is passed on untouched from where that shows.
//
// A drive that is away resets connections as soon as they are made, as the port would otherwise be free for others to take.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Injector.mu guards the counters of every rule and the set of
// connections; a connection has one reader, and its writers take turns.
//
// # Errors
//
// Parse gives an [Error] with line and column for every thing that is wrong, joined. What a wrapped flash returns wraps
// [ErrInjected], as does what reading and writing a dropped connection returns.
//
// # Debugging
//
// Options.Logger gets a line for each fault; Injector.Stats counts them.
package faults
