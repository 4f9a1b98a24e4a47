// Package processor runs a lowered pipeline on a target: it turns rows of a partition into mini-batches.
//
// # Overview
//
// [Start] makes a [Processor] of a target. Package sdk calls it for drives, and package cpu for the node's CPU. A
// processor is one program in one target's memory. [Processor.Open] begins a [Stream] over a [Run] of rows of a
// partition:
//
//	p, err := processor.Start(ctx, t, prog, schema, processor.Options{})
//	s, err := p.Open(ctx, processor.Run{Partition: part, Rows: part.Rows, Batch: 8192})
//	for { m, err := s.Next(ctx); ...; m.Release() }
//
// A slice's way through the files: [Processor.Open] (runner.go) gives a stream its share of the memory (memory.go) and
// enters the stream in the registry (registry.go). The stream (stream.go) has its maker (maker.go) take the slicer's
// next step, execute it on the target, and hand the result to the slicer, until a mini-batch is whole. The mini-batch
// is then lent, as views of the target's memory (views.go), or copied (fetch.go), and Next returns it.
//
// [WithSelections] makes mini-batches of the rows that passed a filter, and [WithAppliers] puts target encodings and
// ids of vocabularies into what any processor makes.
//
// Every stream has an equal part of the memory. A mini-batch is lent from the target's memory if that memory is
// mapped and output buffers stay free. Otherwise it is copied.
//
// # Concurrency
//
// A Processor is safe for concurrent use. A Stream has one consumer, and a goroutine of its own that works one
// mini-batch ahead; the goroutine ends with the stream's context, at Close, or with the processor's Close.
// Mini-batches may be released from any goroutine, also after their stream is closed, but not after their processor
// is closed.
//
// # Errors
//
// A stream fails with a *partition.DataError that names partition, row group, column and page or line, with a
// *slicer.MemoryError, with a *target.EngineError, or with the target's own error. A panic while a mini-batch is
// made ends the stream with a *[PanicError], and never ends the process.
//
// # Debugging
//
// [Stats] counts what a processor did. Stats.Reissued and Stats.BytesReread grow when the memory is too small to work
// well in.
package processor
