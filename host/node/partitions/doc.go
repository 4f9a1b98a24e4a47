// Package partitions is how partitions get onto a storage node's drives, and off them.
//
// # Overview
//
//	Store.Serve    GET a partition's bytes, or a range of them, from a drive
//	Store.Receive    PUT one: it is checked against its description as it comes in
//	Store.Copy     fetch one from another node: replication
//	Store.Verify   read one whole, and compare it with what it was
//
// What comes in is appended to the drive's volume (package volume), whose last write commits it: nothing is committed
// that is not what it should be, by its length, the SHA-256 of its bytes and that of its footer. Then it is read back
// from the drive, and only then part of what the node offers. Its checksum is kept over restarts, in sums.json of the
// state folder.
//
// # Concurrency
//
// A Store is safe for concurrent use. Partitions are verified one at a time: the drives have other work.
//
// # Errors
//
// [ErrRequest] for what makes no sense, [ErrCopy] for bytes that are not the partition or did not survive their way; an
// error that wraps fs.ErrNotExist for a partition that is not there; the rest is the drive's or the volume's.
//
// # Debugging
//
// The log has every partition that was put or copied, and those that a drive could not read to their end.
package partitions
