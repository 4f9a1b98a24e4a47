// Package cpu runs feature pipelines on the node's own processor: the drive's engine over this process's memory, and
// the reference engine, behind the same processor.Processor as a drive.
//
// # Overview
//
// [New] plans slices exactly as for a drive. A partition that lies in memory (partition.Options.Bytes, mapped or read)
// is decoded where it is; of any other, windows are read into the processor's memory by its reader. [NewReference]
// decodes whole column chunks and computes one value at a time, by the definition; it is slow, and what everything else
// is held against.
//
// This is the only package above fpga that calls the engine.
//
// # Concurrency
//
// Processors are safe for concurrent use. Options.Threads bounds how many slices run at once; each stream runs one.
//
// # Errors
//
// Those of package sdk: *partition.DataError, *slicer.MemoryError, errors that wrap partition.ErrUnreadable.
//
// # Debugging
//
// When an engine's mini-batch is in doubt, tensor.Diff it with the reference's.
package cpu
