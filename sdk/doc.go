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
//	tcp://HOST:PORT/NQN  a drive over NVMe/TCP (not in this version: ErrScheme)
//	nvme:/dev/nvme0      a drive behind the kernel (not in this version: ErrScheme)
//
// with ?size=1GiB&lba=512&slm=512MiB&threads=1&commands=vendor. [OpenFiles] makes a drive whose namespace is some
// existing files, not copied.
//
// # Concurrency
//
// Device, Queue, Compute and SLM are safe for concurrent use. A device has one [Queue] of bounded depth; transfers
// larger than the drive takes in one command are split and kept in flight together. Close waits for what is
// outstanding.
//
// # Errors
//
// Errors carry the drive and the operation and wrap what the drive said (nvme.Status). Callers decide on [ErrSLMFull],
// [ErrArgs], [ErrNoCompute], [ErrScheme], [ErrClosed], and csd's errors about geometry and second openers.
//
// # Debugging
//
// Options.Trace sees every command with its time. Device.Counters reads the drive's own counters.
package sdk
