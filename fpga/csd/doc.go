// Package csd is the whole computational storage drive: an NVMe controller over flash, device memory and an engine.
//
// # Overview
//
// [Open] opens or makes a [Drive]; hosts connect to Drive.Subsystem. Its namespace 1 is one of
//
//   - memory, gone with the process;
//   - a file, byte for byte from block 0 ([Options].Path), with geometry, UUID, counters, trust and the active
//     image in PATH.json, and loaded images in PATH.slotN.mimg, each replaced by a rename;
//   - some files, each from a block boundary on, read-only and not copied ([Files]).
//
// # Lent flash
//
// Engine threads read blocks of flash in a file where they lie, in a mapping of the file, instead of a copy in the
// drive's memory, on Linux and while no other process can change the file. The drive holds a lease on the file (fcntl,
// F_SETLEASE), which the kernel grants if no other process has it open, or has a file of [Files] open for writing. A
// process that later opens or cuts the file waits until the drive has copied what it lent and given the lease back,
// which takes as long as the executions that run. The drive asks for another lease a second later at the earliest. A
// medium that fails under an execution fails its command with Unrecovered Read Error. Flash on file systems other than
// ext4, XFS, Btrfs, F2FS and tmpfs is copied, and so is flash in memory.
//
// # Regions
//
// A drive has 1 to 7 regions ([Options].Regions), which execute apart from each other. A region has an active image
// with an engine of its own, and a weight (Options.RegionWeights), to which its engine threads and its share of the
// local memory are in proportion. The image slots are a library for all regions. In the standard command set region r
// is namespace 3 + r, in the vendor set a field of the commands; package controller keeps hosts out of each other's
// regions. The images of regions are activated and kept one by one; all that follows about the active image holds for
// each region. [Options].HostIOShare limits what ordinary reads and writes take from regions that compute. PATH.json
// has the oldest version that can hold its content, so that older builds read it.
//
// # Images
//
// Image slot 0 holds the stock image, which came with the drive and cannot be replaced. Slots 1 and 2 are the field
// pair: the deployed image and the one before it. Slot 3 is for trials; rollouts do not use it. Log page 03h reports
// the slots as firmware slots 1 to 4; vendor log C1h ([Drive.Images]) reports everything.
//
// An image is judged when it is loaded (format, interface, revocation, signature, identifier), and again when it is
// activated. The drive must then have the image's units, and the image's known-answer vectors must come out; until they
// do, the old image stays active. The write of PATH.json commits: a kill before it leaves the old image active, a kill
// after it the new one. No image is activated in a region while another host holds memory of the region or a program
// executes there. A region starts with its last good image: the image that was active, else the one before it, else the
// stock image. The drive's trust ([Options].Trust) is kept in PATH.json; a host never sets it.
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
