// Package lane takes a program's columns through simulated units, from the pages of a Parquet file, or from Criteo's
// rows, to mini-batches.
//
// # Overview
//
// A [Simulation] holds the simulators of the units that programs need, each a process of its own (package cosim).
// [Simulation.NewReader], [Simulation.NewTextReader] and [Simulation.NewBinaryReader] find the unit of every step of a
// program, and [Reader.MiniBatch] makes mini-batches as the drive's engine does, to the last bit:
//
//	text       text_decoder
//	binary     plain_decoder
//	levels     hybrid_decoder, then list_lengths
//	values     plain_decoder, or hybrid_decoder and then dictionary_gather
//	operators  fill_null, clamp, int_to_float, log, bucketize, sigrid_hash, positive_modulus, hex_to_int
//	dense      row_packer
//
// This machine's processor does the rest, which docs/rtl.md calls firmware: it reads footers and page headers, unpacks
// pages, carries the results of a unit to the next one, and puts ids, lengths and labels together. A [Report] says
// which units computed, in how many cycles, and what firmware did.
//
// # Concurrency
//
// A Simulation may be used by several goroutines. It has a set of simulators for each processor; the columns of a
// mini-batch, and then the tiles of dense, are spread over the sets, in each of which one unit runs at a time. A Reader
// belongs to one goroutine at a time.
//
// # Errors
//
// An error wraps rtl.ErrNotInRTL if a program or a page asks for something that no unit has, and names the step.
// [Check] finds the steps of a program that no unit computes before anything is simulated; encodings are known when
// pages are read. cosim.ErrTools says that the tools which make simulators are missing, [ErrData] that the data is at
// fault, and a *format.PageError names the page that is damaged, a *text.RowError the line.
//
// # Debugging
//
// Compare a mini-batch with that of fpga/engine/reference. Each step is one call of a unit with a setup and words,
// which a test of package cosim can repeat.
package lane
