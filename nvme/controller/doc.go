// Package controller is an NVMe controller: admin and I/O command processing over namespaces and a compute interface.
//
// A Subsystem is a drive. Namespace 1 holds blocks (NVM command set) over a Flash. A drive that computes has more
// namespaces over a Compute: namespace 2, subsystem local memory, and namespaces of computational programs from 3 on,
// one for each region of the device. Without a Compute it is a plain drive. ChangeNamespaces adds and removes further
// namespaces of blocks while hosts are connected.
//
// A Controller is one host's association with the drive (dynamic controller model). A transport drives it:
// PropertyGet and PropertySet for properties, OpenQueue and CloseQueue for queues, and two steps for every command.
// Parse returns the data to move and refuses a command whose entry alone is wrong; Execute executes the command.
// Local is the transport of a host in the same process.
//
// # Ownership of memory and computation
//
// Memory keeps hosts apart. An association reserves ranges of subsystem local memory (by SLM Reserve, or by creating a
// memory range set), and only then can it fetch, store, copy into or execute over them. To every other association
// those bytes do not exist, and they are cleared before another association gets them. A reservation ends with the
// association, with a reset, or with its release; while a command uses a range, the range is not given back. So each
// byte of a drive's memory has one owner at a time. In practice the first host also owns the computation, because it
// reserves the memory that it needs for that; a second host may reserve what is left, and their executions then share
// the engine's threads in turn.
//
// A device with several regions executes in each apart from the others. A region's share of the memory is a part of its
// own (cs.RegionWindow), and a program runs over memory of its region only. The association that holds memory of a
// region owns it: others can neither reserve memory of the region nor execute there. Memory range sets belong to a
// region and an association.
//
// The active program belongs to the region and not to an association: a host that may administer the drive activates
// images, and other hosts that asked for namespace events learn of it. The active program never changes during an
// execution in its region: Program Activation and Image Activate return Program In Use while one runs. They do so, too,
// while a host holds memory of the region, other than the owner of one region of several.
//
// # Moving and executing
//
// A Preprocess moves its blocks from flash into memory in the goroutine of its own command, and only then waits for an
// engine thread, so that the moves of one command overlap the execution of another. Bytes, commands and time are
// counted for each direction and reported in vendor log page C0h. Blocks that such moves read count as data units read
// in the SMART log, but not as host read commands. Reads of a mapped view are not counted, as with a PCIe BAR.
//
// # Ordinary commands beside computation
//
// Options.HostIOShare limits the commands of the NVM command set to a share of the time, while a region executes and
// for a moment after: one at a time is on the flash, and each pays for the time that it took. Moves of Preprocess and
// Memory Copy do not wait, nor does anything while no region executes. Only the part of a command that uses the flash
// waits; it holds no lock meanwhile, and an abort or the removal of its namespace ends it.
//
// # Lent blocks
//
// A flash that can lend its bytes (LendingFlash) saves the copy of blocks into memory where the device reads its input
// by Execution.Input. The copy is put off: the memory holds the blocks as if they had been copied, and executions read
// them on the flash. The copy is made when a command reads the bytes in the memory itself, when a host gets a view of
// them, when the blocks are about to be written or deallocated, and when the flash recalls what it has lent. A write
// to a block waits for executions that read the block; a write to other blocks does not. What the owner of the memory
// gives back is not copied. If blocks cannot be read when their copy is made, commands that read the memory fail with
// Unrecovered Read Error until the memory is written again; views of it are refused. Bytes that were lent are counted
// apart from bytes that were copied; those of a copy that was put off and made later count in both.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. The namespaces with blocks are a table that is replaced, so that a
// command finds its namespace without a lock; a command enters its namespace before it touches the flash and leaves it
// when it completes, and a namespace that is removed waits for the commands in it. Controller.mu guards an
// association's state, Subsystem.mu the list of associations, programs.Slots the changes of programs, memory.mu the
// claims and accesses, lender.mu the lent blocks. The locks of programs.Slots and memory are taken under
// Controller.mu, lender.mu under memory.mu. A Flash or a Compute is called with no lock held, except that a copy that
// was put off reads the flash under lender.mu. The bytes that an earlier holder left in memory are cleared with no lock
// held; until then no association holds the memory. Execute runs in its caller's goroutine. The goroutines of a reset
// and of a shutdown end before Close returns.
//
// # Errors
//
// Every command completes with a status of the specification; the do-not-retry bit is set by one rule
// (nvme.Status.Final). An error of Flash becomes Unrecovered Read Error, Write Fault or, for ENOSPC, Capacity Exceeded;
// media errors also make an entry in the error information log, with the first block that failed, and count in the
// SMART log. A Flash or a Compute that panics fails its command with Internal Error.
//
// # Debugging
//
// Options.Logger records changes of state at debug level, and failures of the flash at error level. Package faults
// wraps a Flash and a Compute to make a drive go wrong.
package controller
