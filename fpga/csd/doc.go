// Package csd is the whole computational storage drive: an NVMe controller over flash, device memory and an engine.
//
// # Overview
//
// [Open] makes a [Drive]; Drive.Subsystem is what hosts connect to. Its namespace 1 is one of
//
//   - memory, gone with the process;
//   - a file, byte for byte from block 0 ([Options].Path), with geometry, UUID, counters, trust and the active image in PATH.json and
//     loaded images in PATH.slotN.mimg, each replaced by a rename;
//   - some files, each from a block boundary on, read-only and not copied ([Files]).
//
// # Images
//
// Program slot 0 holds the stock image, which came with the drive and cannot be replaced. Slots 1 and 2 are the field pair: the image
// deployed and the one before it. Slot 3 is for trying images; rollouts leave it alone. Log page 03h tells of them as firmware slots
// 1 to 4, vendor log C1h ([Drive.Images]) of everything.
//
// An image is judged when it is loaded (format, interface, revocation, signature, identifier), and again when it is activated; then it must have
// units that the drive has, and its known-answer vectors must come out. Until they did the old image is the active one. The
// write of PATH.json commits: a kill before it leaves the old image active, one after it the new. Nothing is activated
// while a host holds memory or executes. A drive starts with the last good image: the one that was active, else the one before it, else
// the stock image. What it trusts ([Options].Trust) is kept in PATH.json, and never set by a host.
//
// # Durability
//
// What was written before a Flush that succeeded, or with force unit access, is on the disk (fsync). A block is written whole
// or not at all as far as the disk under the file keeps to that; a transfer of several blocks may be cut between any two of
// them by a crash, and readers beside it may see some of its blocks and not others. A kill of the process loses nothing
// that a completed command wrote.
//
// A file that is shorter than the drive was cut: the bytes that are missing read as zeros, and [Drive.Lost], the log,
// SMART and log page C2h say so until they have been written or deallocated. A drive whose state cannot be kept,
// because the disk is full, opens with a warning, and one whose file this process may only read opens for reading.
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
// Options.Logger tells why an image was refused, and so do the refusals of [Drive.Images]. Vendor log C0h has the counters. Package nvme/faults injects faults through [Options].WrapFlash. Built with
// -tags debug, memory that a closed drive had is unmapped, so that a view kept too long faults instead of reading zeros.
package csd
