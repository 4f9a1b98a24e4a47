// Package target is the seam between the code that plans slices and the code that executes them.
//
// # Overview
//
// A [Target] is memory with an engine behind it. Package sdk makes one of a drive, package cpu one of the node's own
// processor. A processor (package processor) lays out the memory, has the target perform [Move]s and execute slices
// ([Execution]), and reads the output. Package slicer decides which slice comes next; a target decides nothing.
//
// An execution works on [Ranges] memory ranges, each a [Span] of the target's memory:
//
//	program | input | dictionaries | scratch | output | result | tables
//
// A move says where its bytes come from ([Source]): the partition on the flash, the target's own memory, or the host,
// which reads a partition that the drive does not hold and stores its bytes in the drive's memory.
//
// # Concurrency
//
// A target is safe for concurrent use. Only the processor that owns a target writes its memory.
//
// # Errors
//
// [ErrEngine] and *[EngineError] say that an engine broke its contract. *[UnreadBlockError] names the block of flash
// that a drive could not read.
//
// # Debugging
//
// Package targettest holds the contract as tests. Wrap a target to see, count, delay or break what a processor asks of
// it: every step of a stream passes through Execute, Load and Store.
package target
