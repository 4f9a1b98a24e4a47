// Package controller is an NVMe controller: admin and I/O command processing over namespaces and a compute interface.
//
// A Subsystem is a drive. Namespace 1 holds blocks (NVM command set) over a Flash. A drive that computes has two more
// over a Compute: namespace 2, subsystem local memory, and namespace 3, computational programs. Without a Compute it is
// a plain drive and answers as one. Further namespaces of blocks come and go with ChangeNamespaces while hosts are
// connected.
//
// A Controller is one host's association with the drive (dynamic controller model). A transport drives it: properties
// by PropertyGet and PropertySet, queues by OpenQueue and CloseQueue, and every command in two steps, Parse, which says
// what data must be moved and refuses what the entry alone shows to be wrong, and Execute, which does it. Local is the
// transport of a host in the same process.
//
// # Who computes
//
// Memory is what keeps hosts apart. An association reserves ranges of subsystem local memory (SLM Reserve, or implicitly by creating a
// memory range set) and only then can fetch, store, copy into or execute over them; to every other association those bytes
// do not exist, and they are cleared before somebody else gets them. Reservations end with the association, a reset, or their
// release; while a command uses a range it is not given back. So a drive has one owner at a time for each byte of its
// memory, and in practice for its computation, as the first host reserves what it needs of the memory; a second host
// may reserve what is left, and their executions then share the engine's threads in turn.
//
// The program that is active is the drive's, not an association's: whoever may administer the drive activates images, and
// other hosts that asked for namespace events are told. It is never changed under an execution: Program Activation
// and Image Activate answer Program In Use while one runs.
//
// # Moving and executing
//
// A Preprocess moves its blocks from flash into memory in the goroutine of its own command, and only then waits for an
// engine thread, so that the moves of one command overlap the execution of another. Bytes moved, commands and time are counted
// each way and told in vendor log page C0h. Blocks that such moves read count as data units read in the SMART log, but not as host
// read commands. What a host reads through a mapped view is counted nowhere, as with a PCIe BAR.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. The namespaces with blocks are a table that is replaced, so that a command looks
// it up without a lock; a command enters its namespace before it touches the flash and leaves it when it completes, and a
// namespace that is removed waits for those who are in it. Controller.mu guards an association's state, Subsystem.mu the list of
// associations, programs.mu changes of programs, memory.mu the claims and leases; the last two are taken under the first, and a Flash or a Compute is only called with
// no other lock held. Execute runs in its caller's goroutine. The goroutines of a reset and of a shutdown end
// before Close returns.
//
// # Errors
//
// Every command completes with a status of the specification; the do-not-retry bit is set by one rule (nvme.Status.Final). An
// error of Flash becomes Unrecovered Read Error, Write Fault or, for ENOSPC, Capacity Exceeded; media errors also make
// an entry in the error information log, with the first block that failed, and count in the SMART log. A Flash or a Compute that panics fails its command
// with Internal Error.
//
// # Debugging
//
// Options.Logger gets changes of state at debug level, failures of the flash at error level. Package faults wraps a
// Flash and a Compute to make a drive go wrong.
package controller
