// Package slicer decides which slice of a mini-batch a target executes next. It is a pure machine: it does no I/O, has
// no context, no goroutine and no clock. Package processor carries out its steps.
//
// # Overview
//
// [New] makes a [Slicer] of a run of rows of a partition. Its owner calls [Slicer.Next] and does what the [Step] says,
// until [End]:
//
//	ReadIndex   read where the pages of a chunk lie; the answer goes to Slicer.Index
//	Execute     perform the moves, execute the slice; the result goes to Slicer.Result
//	Relocate    copy what was written of a mini-batch to a larger slot
//	Done        a mini-batch is whole, and lies in a slot
//
// A mini-batch is a list of portions: the rows of one column chunk that it holds. For every portion the slicer wants a
// window of the chunk, a place for its decoded dictionary and one for its unpacked page. A slice has a task for every
// portion that found room, as many as the memory holds; the engine leaves a cursor in each chunk, and the next slice
// goes on there. What the slicer knows of pages comes from footers, page indexes, and from what the engine asked for;
// none of it decides what a mini-batch holds. Row groups of any size pass through a memory of fixed size: one
// mini-batch of output and the largest page, packed and unpacked, with its dictionary, are enough.
//
// Memory is handed in as a [Workspace]. It holds a result block, three areas (input, dictionaries, scratch for unpacked
// pages) and a ring of output slots:
//
//	| result | input | dictionaries | scratch | ... | slot | slot | slot |
//
// # Who decides what
//
//	chunk      where a stream stands in a column chunk, what it wants, what of it lies in memory
//	surveyor   what portions want of the three areas (footprint)
//	sharing    how the areas share the memory, and what to do without when it is short
//	builder    which portions a slice takes, which windows grow, whose memory makes way
//	output     the slot of the mini-batch, and when it must grow
//	results    what a result says: rows, cursors, what was missing, faults
//
// # Why it ends
//
// Every step makes progress or changes what is wanted, and neither goes on for ever.
//
// Building a slice: an attempt that places nothing divides the memory for more than was ever kept resident, ends a
// guess (once a column), makes do with one output slot (once), makes a chunk do with less (twice), takes all windows to
// make one run of what is free (once a slice), or cuts the rows of a task (at least by one row). When nothing is left
// to do without, the error is a *[MemoryError]. An attempt may also rewind a chunk that lost its dictionary, once an
// attempt. After half of maxAttempts portions are placed one by one and rows are halved, which takes some forty
// attempts at most; maxAttempts itself is not reached.
//
// Executing: a result writes rows, reaches a further page, or asks for more than the slice gave; anything else is a
// breach of the engine's contract and ends the stream. What is asked for is bounded by the chunk, so a chunk that keeps
// its memory stalls for as many slices as it has needs: a header, a dictionary, a page, its room, the output. Chunks
// that take memory from each other may forget what they had, and ask again; after patience slices, and four for every
// portion, they are placed one by one, and keep what they have. What does not fit then is halved until it fits, or is
// one row and a *[MemoryError]. maxStalledSlices is not reached by an engine that asks for what it needs; it guards
// against one that asks for one byte more every time.
//
// # Concurrency
//
// A Slicer and its Workspace have one owner at a time. Resume points are noted in the partition, which is safe for
// concurrent use.
//
// # Errors
//
// *[MemoryError] names column, page and the bytes of a workspace that would do. *partition.DataError names the place of
// damaged bytes. *target.EngineError says how the engine broke its contract. After an error the slicer is at its end.
//
// # Debugging
//
// The scripts in testdata show what the slicer does with given memory, pages and answers; a new one is written by its
// commands and filled in with MILLRACE_UPDATE=1. [Execute.Traffic] tells bytes that were moved more than once: the
// memory is too small to work well in.
package slicer
