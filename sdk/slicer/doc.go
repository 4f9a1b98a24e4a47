// Package slicer decides which slice of a mini-batch a target executes next. It is a pure machine: it does no I/O, has
// no context, no goroutine and no clock. Package processor carries out its steps.
//
// # Overview
//
// [New] makes a [Slicer] of a run of rows of a partition. Its owner calls [Slicer.Next] and carries out the [Step],
// until [End]:
//
//	ReadIndex   read where the pages of a chunk lie; the answer goes to Slicer.Index
//	Execute     perform the moves, execute the slice; the result goes to Slicer.Result
//	Relocate    copy the written part of a mini-batch to a larger buffer
//	Done        a mini-batch is whole, and lies in a buffer
//
// A mini-batch is a list of portions: the rows of one column chunk that it holds. For every portion the slicer wants
// a window of the chunk, a place for its decoded dictionary and one for its unpacked page. A slice has a task for
// every portion that found room, as many as the memory holds; the engine leaves a cursor in each chunk, and the next
// slice goes on there. The slicer learns about pages from footers, page indexes and the engine's requests. This
// knowledge never decides which rows a mini-batch holds. Row groups of any size pass through a memory of fixed size:
// one mini-batch of output and the largest page, packed and unpacked, with its dictionary, are enough. A memory that
// holds as many row groups as a mini-batch lies in is divided for them from the beginning.
//
// Memory is handed in as a [Workspace]. It holds a result block, three areas (input, dictionaries, scratch for unpacked
// pages) and a ring of output buffers:
//
//	| result | input | dictionaries | scratch | ... | buffer | buffer | buffer |
//
// Where the partition does not lie on the target ([Options.FromHost]) the host reads the windows and stores them.
// Execute.Ahead then lists the windows of the next slices. The host stores them while the current slice executes, in
// memory that the current slice does not touch.
//
// # Decisions
//
//	chunk           where a stream stands in a column chunk, its wants, the part of it that lies in memory
//	surveyor        how much of the three areas portions want (footprint)
//	memorydivision  how the areas share the memory, and which guesses go when it is short
//	builder         which portions a slice takes, which windows grow, whose memory makes way
//	ahead           which windows of later slices are brought while a slice executes
//	output          the buffer of the mini-batch, and when it must grow
//	results         the content of a result: rows, cursors, requests, faults
//
// # Why it ends
//
// Every attempt at building a slice places a portion or gives something up for good, and every slice makes progress or
// shrinks what the engine can still ask for.
//
// Building a slice. An attempt that places nothing does one of these, and may be followed by one attempt that divides
// the memory again:
//
//	once a mini-batch    it ends the guesses at the sizes of unpacked pages
//	once a slice         it drops all windows, to join the free memory into one run
//	once                 it makes do with one output buffer
//	twice a portion      it ends the guesses at a dictionary, and then those at a window
//	once a slice         it cuts the rows of a task by the share of the input that fits
//	log2(rows) times     it halves the rows of a task
//
// When nothing is left to give up, the error is a *[MemoryError]. That makes fewer than 2 * (5 + 1 + 32) + 1 attempts
// for any mini-batch. maxAttempts lies above that: a slicer that reaches it has a fault, and returns an error that
// says so instead of trying forever.
//
// Executing. A result writes rows, reaches a further page, or asks for more than the slice gave; anything else is a
// breach of the engine's contract and ends the stream. A chunk that keeps its memory asks for its header, its
// dictionary's page, its dictionary, its unpacked page and the output, once each, and for each page of its rows.
// Chunks that take memory from each other lose their bytes and ask again. So after a number of slices without
// progress (patience, and four for every portion) portions are placed one by one and keep their memory. A portion
// that does not fit then is halved until it fits. A single row that does not fit is a *[MemoryError].
//
// The guard maxStalledSlices is for engines, not for this package. Each answer of an engine may be new and still lead
// nowhere: for an engine that asks for one byte more every time, a chunk of 64 MiB would be moved 67 million times.
// No single answer distinguishes that engine from an engine that reads a long header piece by piece.
//
// # Concurrency
//
// A Slicer and its Workspace have one owner at a time. Resume points are noted in the partition, which is safe for
// concurrent use.
//
// # Errors
//
// *[MemoryError] names the column, the page and the size of a workspace that would suffice. *partition.DataError
// names the place of damaged bytes. *target.EngineError says how the engine broke its contract. After an error the
// slicer is at its end.
//
// # Debugging
//
// The scripts in testdata show what the slicer does with given memory, pages and answers; to add a script, write its
// commands and fill in the rest with MILLRACE_UPDATE=1. [Execute.Traffic] counts the bytes that were moved more than
// once: many of them show that the memory is too small to work well in.
package slicer
