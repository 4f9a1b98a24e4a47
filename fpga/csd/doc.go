// Package csd is the whole computational storage drive: an NVMe controller over flash, device memory and an engine.
//
// # Overview
//
// [Open] makes a [Drive]; Drive.Subsystem is what hosts connect to. Its namespace 1 is one of
//
//   - memory, gone with the process;
//   - a file, byte for byte from block 0 ([Options].Path), with geometry, UUID, counters and the active image in PATH.json and
//     loaded images in PATH.slotN.mimg, each replaced by a rename;
//   - some files, each from a block boundary on, read-only and not copied ([Files]).
//
// The stock image lies in program slot 0 and is active in a new drive. An image runs its known-answer vectors before it
// becomes active; one that fails leaves the active image as it was.
//
// # Durability
//
// What was written before a Flush that succeeded, or with force unit access, is on the disk (fsync). A block is written whole
// or not at all as far as the disk under the file keeps to that; a transfer of several blocks may be cut between any two of
// them by a crash, and readers beside it may see some of its blocks and not others. A kill of the process loses nothing
// that a completed command wrote.
//
// # Concurrency
//
// A Drive is safe for concurrent use. It executes at most Options.Threads slices at once, on the goroutines that bring the
// commands; further ones wait. Close needs every association closed.
//
// # Errors
//
// [ErrBusy], [ErrGeometry], [ErrNoDrive], fs.ErrExist from Open. Everything else comes out of commands as a status.
//
// # Debugging
//
// Options.Logger tells why an image was refused. Vendor log C0h has the counters. [Faulty] injects faults. Built with
// -tags debug, memory that a closed drive had is unmapped, so that a view kept too long faults instead of reading zeros.
package csd
