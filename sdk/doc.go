// Package sdk opens drives and runs feature pipelines on them.
//
// # Overview
//
// [Open] opens a drive by URI and returns a [Device]: it reads and writes blocks of the drive's namespace and, where
// the drive computes, has a [Compute]: reserve local memory ([SLM]), store a program there, move blocks into it and
// execute, fetch what came out or look at it in place. The same calls work with the vendor command set and with the
// standard one (Subsystem Local Memory and Computational Programs); the URI's commands= chooses.
//
//	mem:[NAME]           flash in memory; a named one is shared by everything in the process that opens it
//	file:PATH            flash in a file, byte for byte from block 0
//	tcp://HOST:PORT/NQN  a drive over NVMe/TCP, with ?hostnqn=NQN&digests=none|header|data|both
//	                     &keyfile=PATH&ctrlkeyfile=PATH; see package nvme/tcp
//	nvme:/dev/nvme0      a drive behind the Linux kernel, local or over fabrics; see package nvme/passthru
//
// with ?size=1GiB&lba=512&slm=1GiB&threads=1&regions=1&region=0&commands=vendor. With size=0 a drive that is opened
// here is diskless: it has no flash, and computes on what hosts store in its memory. A drive of several regions
// (regions=) is opened at one of them (region=), in which the device computes and whose image it changes. A drive in a
// file is open once in a process, unless its devices have the same [SharedDrives]. [OpenFiles] makes a drive whose
// namespace is some existing files, not copied.
//
// [NewProcessor] runs a lowered pipeline on a drive. It makes a target (package target) of the drive and starts a
// processor (package processor) on it; package cpu does the same for the node's CPU. A partition that lies on the drive
// is opened with its extents there. This host reads the windows of a partition without extents and stores them in the
// drive's memory. It reads the windows of a slice while the previous slice executes:
//
//	part, err := partition.Open(ctx, name, reader, size, program.Parquet, partition.Options{Extents: extents})
//	p, err := sdk.NewProcessor(ctx, dev, prog, schema, processor.Options{})
//	s, err := p.Open(ctx, processor.Run{Partition: part, Rows: part.Rows, Batch: 8192})
//	for { m, err := s.Next(ctx); ...; m.Release() }
//
// # Concurrency
//
// Device, Queue, Compute and SLM are safe for concurrent use. A device has one [Queue] of bounded depth; transfers
// larger than the drive takes in one command are split and kept in flight together. Close waits for outstanding
// commands.
//
// # Errors
//
// Errors carry the drive and the operation and wrap what the drive said (nvme.Status). Callers decide on [ErrSLMFull],
// [ErrArgs], [ErrNoCompute], [ErrClosed], and csd's errors about geometry and second openers. A read that failed in a
// move is a *target.UnreadBlockError. A panic of a drive in this process fails its command with a
// *processor.PanicError.
//
// # Debugging
//
// DeviceOptions.Trace sees every command with its time. Device.Counters reads the drive's own counters, which must
// agree with the BytesPlanned of the processor's statistics.
package sdk
