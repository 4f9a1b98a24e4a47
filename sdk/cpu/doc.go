// Package cpu runs feature pipelines on the node's own processor: the drive's engine over this process's memory, and
// the reference engine, behind the same processor.Processor as a drive.
//
// # Overview
//
// [New] plans slices exactly as for a drive. A partition that lies in memory (partition.Options.Bytes, mapped or
// read) is decoded in place. For any other partition, its reader reads the windows into the processor's memory.
// [NewReference] decodes whole column chunks and computes one value at a time, by the definition. It is slow, and the
// tests compare every other way with it.
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
