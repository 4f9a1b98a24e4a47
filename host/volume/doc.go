// Package volume keeps files on a drive without a file system: a tar archive that begins at byte 0 of the namespace.
//
// # Overview
//
// [Open] reads the archive's headers. [Volume.List] gives the members and their places on the drive, with which a
// host names a partition's blocks to the drive; [Volume.Open] reads one; [Volume.Put] appends one. The system's tar
// writes and reads the same bytes:
//
//	tar -cf drive.flash part-0.parquet part-1.parquet
//	tar -tf drive.flash
//
// Members are contiguous and begin at multiples of 512 bytes. The archive ends at the first block of 512 zeros, and
// nothing after that is looked at. Headers may be of the old, ustar, pax or GNU kind; directories and links are passed
// over, sparse members listed and refused.
//
// # Crash safety
//
// An archive that ends at byte E has zeros there. Put writes, in this order: everything of the new member except the
// device block with byte E, with two zero blocks of 512 bytes after it; Flush; then the block with byte E, with force
// unit access. That last write is one device block, which the drive writes whole or not at all, and it is the commit:
// before it the archive ends at E as it did, after it the member is whole and on stable storage. Nothing that was
// part of the archive is ever overwritten with anything but itself. A Put that fails before its last write
// deallocates the blocks that it has written. The blocks of a Put that was killed keep their room until a later Put
// takes it, or [Volume.Trim] gives it back. Both touch only blocks behind the archive's end.
//
// # Concurrency
//
// A Volume is safe for concurrent use. One Put runs at a time; reads run beside it. A drive has one appender: two
// volumes of one drive notice each other's finished members, but not two Puts at the same moment.
//
// # Errors
//
// [ErrNotTar] and [ErrCorrupt] are about foreign bytes. [FullError] (which wraps [ErrFull]) says how many bytes were
// needed. [ErrExists], [ErrName], [ErrSize], [ErrDiskFull], [ErrSparse] and fs.ErrNotExist say why a member cannot be
// written or read.
//
// # Debugging
//
// `millrace drive ls` lists the members that Open sees; `tar -tvf` on the flash of a file: drive lists those that
// other programs see.
package volume
