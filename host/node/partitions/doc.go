// Package partitions brings partitions onto a storage node's drives, and serves them to other nodes.
//
// # Overview
//
//	Store.Serve      GET a partition's bytes, or a range of them with its CRC32C, from a drive
//	Store.Receive    PUT a partition, which is checked against its description as it comes in
//	Store.Copy       fetch a partition from another node: replication
//	Store.Verify     read a partition whole, and compare it with what was put
//
// A partition that comes in is appended to the drive's volume (package volume), whose last write commits it. It is
// committed only if its length, the SHA-256 of its bytes and that of its footer are those of its description. Then it
// is read back from the drive, and only after that the node offers it. Its checksum is kept over restarts, in sums.json
// of the state folder.
//
// # Concurrency
//
// A Store is safe for concurrent use. Partitions are verified one at a time, because the drives have other work. They
// are appended to a drive one at a time, through whichever of its regions, and all its regions list them then.
//
// # Errors
//
// [ErrRequest] says that a request makes no sense, [ErrCopy] that bytes are not the partition, or were damaged on their
// way. An error about a partition that is not there wraps fs.ErrNotExist. Other errors are the drive's or the volume's.
//
// # Debugging
//
// The log has every partition that was put or copied, and those that a drive could not read to their end.
package partitions
