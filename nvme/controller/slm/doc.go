// Package slm is a drive's subsystem local memory: which association may touch which byte, and which blocks of the
// flash it holds without a copy.
//
// # Overview
//
// [Memory] keeps the claims of associations: by reservations, and by memory range sets. Claims of two associations
// never overlap, the windows of regions have one owner each, and nobody reads the bytes of an earlier holder. A command
// has an [Access] to ranges that its association holds, which keeps them claimed while it runs.
//
// [Lender] keeps copies of blocks that are put off: the memory holds the blocks as if they had been copied, executions
// read them on the flash through an [Input], and they are copied when a command needs them in the memory itself, or
// before they change on the flash.
//
// # Concurrency
//
// Both are safe for concurrent use; each has a lock of its own, and Memory's is taken before Lender's. Memory is
// cleared for a new holder without a lock. An Input belongs to its execution. The bytes themselves are not guarded:
// claims and accesses keep commands apart.
//
// # Errors
//
// The methods return the status of the command that asked.
package slm
