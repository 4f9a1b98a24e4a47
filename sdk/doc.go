// Package sdk opens drives and runs feature pipelines on them.
//
// # Overview
//
// [Open] opens a drive by URI and gives a [Device]: blocks of its namespace in and out, and, where the drive computes,
// a [Compute]: reserve local memory ([SLM]), store a program there, move blocks into it and execute, fetch what came
// out or look at it in place. The same calls work with the vendor command set and with the standard one
// (Subsystem Local Memory and Computational Programs); the URI's commands= chooses.
//
//	mem:[NAME]           flash in memory; a named one is shared by everything in the process that opens it
//	file:PATH            flash in a file, byte for byte from block 0
//	tcp://HOST:PORT/NQN  a drive over NVMe/TCP, with ?hostnqn=NQN&digests=none|header|data|both
//	                     &keyfile=PATH&ctrlkeyfile=PATH; see package nvme/tcp
//	nvme:/dev/nvme0      a drive behind the Linux kernel, local or over fabrics; see package nvme/passthru
//
// with ?size=1GiB&lba=512&slm=512MiB&threads=1&commands=vendor. [OpenFiles] makes a drive whose namespace is some
// existing files, not copied.
//
// [NewProcessor] runs a lowered pipeline on a drive, and [Start] on any other [Target]; package cpu has the node's CPU and
// the reference engine. A [Processor] is one program in one device's memory. [Processor.Open] begins a [Stream] over a
// run of rows of a [Partition], which [OpenPartition] has read the footer of (or, of text, counted the rows of):
//
//	part, err := sdk.OpenPartition(ctx, name, reader, size, program.Parquet, sdk.PartitionOptions{Extents: extents})
//	p, err := sdk.NewProcessor(ctx, dev, prog, schema, sdk.Options{})
//	s, err := p.Open(ctx, sdk.Run{Partition: part, Rows: part.Rows, Batch: 8192})
//	for { m, err := s.Next(ctx); ...; m.Release() }
//
// A stream plans slices: for every column of a mini-batch a window of its column chunk, a place for its dictionary and
// one for its unpacked page; it sends as many columns at once as the memory holds, and goes on where the engine's
// cursors stand. What it knows of pages comes from footers, offset indexes and what the engine asked for; none of it
// decides what a mini-batch holds. Row groups of any size pass through a memory of fixed size: one mini-batch of
// output and the largest page, packed and unpacked, with its dictionary, are enough ([ErrSLM] names the page that is
// not). A mini-batch is lent from the device's memory where that is mapped and slots stay free, else copied.
//
// # Concurrency
//
// Device, Queue, Compute and SLM are safe for concurrent use. A device has one [Queue] of bounded depth; transfers
// larger than the drive takes in one command are split and kept in flight together. Close waits for what is
// outstanding.
//
// A Processor and a Partition are safe for concurrent use. A Stream has one consumer, and a goroutine of its own that
// works one mini-batch ahead; it ends with the stream's context, at Close, or with the Processor's Close. Mini-batches may
// be released from any goroutine, also after their stream was closed, but not after their Processor was.
//
// # Errors
//
// Errors carry the drive and the operation and wrap what the drive said (nvme.Status). Callers decide on [ErrSLMFull],
// [ErrArgs], [ErrNoCompute], [ErrClosed], and csd's errors about geometry and second openers.
//
// A stream fails with a *[DataError] that names partition, row group, column and page or line ([ErrData], [ErrSchema],
// [ErrUnsupported]), with an *[ErrSLM], with an *[EngineError], or with what the device said; [OpenPartition] with
// [ErrPartition]. A panic on the way ends the stream with a *[PanicError], never the process.
//
// # Debugging
//
// DeviceOptions.Trace sees every command with its time. Device.Counters reads the drive's own counters, which must agree
// with Stats.BytesPlanned. Stats.Reissued and Stats.BytesReread tell when the memory is too small to work well in.
package sdk
