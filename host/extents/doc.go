// Package extents finds where a file's bytes lie on the block device under its file system, so that a drive can read
// them itself.
//
// # Overview
//
// [Find] asks the file system (FIEMAP, after the file was written back) and sysfs (the device, and where its partition
// begins), and returns a [Map]: extents in bytes of the whole disk, in order, without holes. It refuses a file whose
// bytes it cannot locate with certainty: on a file system that is not known to report offsets on one device, or on a
// device that stands on others; with a hole, or with an extent that is unknown, delayed, encoded, inline, unaligned or
// unwritten. Each refusal is an error of its own.
//
// [Map.Check] looks again after the bytes have been read. Nothing keeps another process from moving or writing the
// file in the meantime; if that happened, the bytes may be wrong, and the caller throws away the mini-batches that it
// made of them.
//
// A loop device is accepted where [Options.Loop] allows it; its disk is then the image file, as a drive on that image
// sees it.
//
// # Concurrency
//
// A Map is safe for concurrent use. Functions hold no state.
//
// # Errors
//
// Errors name the file and wrap [ErrExtent], [ErrHole], [ErrFileSystem], [ErrStacked], [ErrMoved] or [ErrUnsupported].
//
// # Debugging
//
// filefrag -v shows the same extents in blocks of the partition.
package extents
