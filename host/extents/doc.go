// Package extents finds where a file's bytes lie on the block device under its file system, so that a drive can be told
// to read them itself.
//
// # Overview
//
// [Find] asks the file system (FIEMAP, after the file was written back) and sysfs (the device, and where its partition
// begins), and gives a [Map]: extents in bytes of the whole disk, in order, without holes. It refuses what it cannot be
// sure of: a file system not known to report places on one device, an extent that is unknown, delayed, encoded, inline,
// unaligned or unwritten, a hole, a device that stands on others. Each refusal is an error of its own.
//
// [Map.Check] looks again when the bytes have been read. A file that was moved or written in between was perhaps read
// wrongly, and what was made of it is thrown away. Nothing keeps others from writing the file meanwhile: the check
// tells.
//
// A loop device is taken where [Options.Loop] allows it; its disk is then the image file, as a drive on that image sees
// it.
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
