// Package csd is the whole computational storage drive: an NVMe controller over flash, device memory and an engine.
//
// # Overview
//
// [Open] opens or makes a [Drive]; hosts connect to Drive.Subsystem. Its namespace 1 is one of
//
//   - memory, gone with the process;
//   - a file, byte for byte from block 0 ([Options].Path), with geometry, UUID, counters, trust and the active
//     image in PATH.json, and loaded images in PATH.slotN.mimg, each replaced by a rename;
//   - some files, each from a block boundary on, read-only and not copied ([flash.Files]).
//
// Each part of a drive has a room: package flash stores the blocks, package memory maps the local memory, package
// images holds the image slots and what the regions execute, and package keptfile the files beside the flash. This
// package joins them, executes slices in the time that is wanted, counts, and keeps the drive's state.
//
// # Regions
//
// A drive has 1 to 7 regions ([Options].Regions), which execute apart from each other. A region has an active image
// with an engine of its own, and a weight (Options.RegionWeights), to which its engine threads and its share of the
// local memory are in proportion. The image slots are a library for all regions. In the standard command set region r
// is namespace 3 + r, in the vendor set a field of the commands; package controller keeps hosts out of each other's
// regions. The images of regions are activated and kept one by one; all that package images says about the active image
// holds for each region. [Options].HostIOShare limits what ordinary reads and writes take from regions that compute.
// PATH.json has the oldest version that can hold its content, so that older builds read it.
//
// # Durability
//
// Data that was written before a Flush that succeeded, or with force unit access, is on the disk (fsync). A block is
// written whole or not at all as far as the disk under the file keeps to that; a transfer of several blocks may be
// cut between any two of them by a crash, and readers beside it may see some of its blocks and not others. A kill of
// the process loses nothing that a completed command wrote. After an fsync that failed every Flush fails until the
// drive is opened again, because the kernel may have dropped what it could not write.
//
// A file that is shorter than the drive was cut: the bytes that are missing read as zeros, and [Drive.Lost], the log,
// SMART and log page C2h say so until they have been written or deallocated. A cut under an open drive is noticed when
// missing bytes are read. A drive whose state cannot be kept, because the disk is full, opens with a warning, and one
// whose file this process may only read opens for reading.
//
// # Concurrency
//
// A Drive is safe for concurrent use. A region of weight 1 executes at most Options.Threads slices at once, on the
// goroutines that bring the commands; further ones wait. Close needs every association closed.
//
// # Errors
//
// [ErrBusy], [ErrGeometry], [ErrNoDrive], fs.ErrExist from Open. Everything else comes out of commands as a status.
//
// # Debugging
//
// Options.Logger records why an image was refused, and so do the refusals of [Drive.Images]. Vendor log C0h has the
// counters. Package nvme/faults injects faults through [Options].WrapFlash and WrapCompute. Built with -tags debug, the
// memory of a closed drive is unmapped, so that a view that was kept too long faults instead of reading zeros.
package csd
