// Package processortest holds what tests of processors share: generated partitions, programs over them, a target that
// behaves as a drive, and the mini-batches that the reference engine makes.
//
// # Overview
//
// [WriteParquet] and [Wide] make Parquet files, [TextRows] and [BinaryRows] make rows of Criteo. [Programs] and
// [Criteo] return the programs that read them. A test puts a file on a [Flash], and compares a run with the
// reference:
//
//	f := processortest.NewFlash(2<<20, 512)
//	part := processortest.Place(t, data, f.Put(rng, data, 0, 1))
//	p := f.Start(t, prog, schema, processor.Options{Streams: 1})
//	want := processortest.Reference(t, prog, schema, run)
//	processortest.RequireSame(t, want, processortest.MiniBatches(t, p, run))
//
// # Concurrency
//
// A Flash is used by the goroutines of a processor's streams. Tests set its fields before they open a stream.
//
// # Errors
//
// A function that takes a test fails it. Collect returns the error of the run, with the mini-batches before the error.
//
// # Debugging
//
// Flash refuses moves that are no whole blocks and ranges that overlap, with an error that names them.
package processortest
