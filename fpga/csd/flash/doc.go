// Package flash is the flash of a drive: the bytes that namespace 1 consists of, in memory, in a file, or in files.
//
// # Overview
//
// [NewMemory] makes a [Flash] that is gone with the process. [OpenFile] opens a [File], which is the flash byte for
// byte and is locked while it is open. [Files] joins files that are already there, read-only, each from a block
// boundary on. Reads and writes keep to blocks: a reader sees each block as one write left it.
//
// A file that is shorter than its flash was cut. What it lacks is a [Range] of lost bytes, which read as zeros, until
// they have been written again: [File.FindLost] looks for them when a drive is opened, and reads find what was cut
// since.
//
// # Lent flash
//
// Engine threads read blocks of flash in a file where they lie, in a mapping of the file, instead of a copy in the
// drive's memory, on Linux and while no other process can change the file. The flash holds a lease on the file (fcntl,
// F_SETLEASE), which the kernel grants if no other process has it open, or has a file of [Files] open for writing. A
// process that later opens or cuts the file waits until the drive has copied what it lent and given the lease back,
// which takes as long as the executions that run. The flash asks for another lease a second later at the earliest. A
// medium that fails under an execution fails its command with Unrecovered Read Error. Of many files some are lent at a
// time. Flash on file systems other than ext4, XFS, Btrfs, F2FS and tmpfs is copied, and so is flash in memory.
//
// # Concurrency
//
// A Flash is safe for concurrent use. SetSize, FindLost, ForbidWrites, OnCut and OnRecall come before it is used. A
// stripe's lock keeps the blocks of a stripe whole; no lock is held while a recall is called.
//
// # Errors
//
// [ErrGeometry], [ErrLocked] and [ErrReadOnly] are wrapped, and so are the errors of the file system. A Sync that
// failed fails until the file is opened again.
package flash
