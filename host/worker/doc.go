// Package worker is a worker without data: a machine without drives that makes mini-batches of partitions which it
// reads from storage nodes, files and stores.
//
// # Overview
//
// [Start] joins a control plane as a storage node does, and launchers see it as one: it is package node's agent, with
// the same calls, tickets, frames, metrics and drains. Instead of the drives of a configuration it has one drive of
// reach any (host.OpenElsewhere), called [DriveName]: it holds no partition, and this machine's cores make the splits
// that the leader gives it. With [Config.Drive] a drive beside the worker computes instead, and the worker's drive is
// called [CardName]: the worker stores what it reads in the memory of that drive, which needs no flash, and fetches the
// mini-batches from there.
//
//	Partitions     host.Elsewhere: knows where the partitions of jobs lie
//	  places       one partition: its copies on nodes and its URL; goes from one to the next when one fails
//	    heldCopy   a copy on a drive of a node, by ranges, each with its CRC32C
//
// The job names the places of its first partitions. The worker asks the control plane (Control.Locate) for the
// places of other partitions, and again when every known place of a partition has failed. Package source joins
// reads, reads ahead, retries, and bounds the memory for this.
//
// A worker keeps nothing. It may be killed, drained or joined at any moment: another worker makes the undelivered
// mini-batches again, with the same bytes.
//
// # What is checked
//
// Every range of a node has a CRC32C, computed from the bytes that the node read from its drive. The node refuses a
// partition whose digest is not that of the manifest. At the beginning and the end of a split it reads the footer on
// its drive again. A store's object is pinned by its identity. Bytes from a place that no longer answers are not
// trusted: the rest of the split is made again.
//
// # Concurrency
//
// All types are safe for concurrent use. One partition's places are shared by the splits of it.
//
// # Errors
//
// A drive that is lost fails its splits with tcp.ErrLost, which launchers see as unavailable: other workers make them.
// The worker opens the drive again until that succeeds.
//
// A partition that cannot be read at any place wraps host.ErrSource: the split goes to another worker. The error of a
// partition that changed everywhere is a *host.ChangedError. The errors of a configuration wrap [ErrConfig].
//
// # Debugging
//
// At the level debug the log has every place that failed, and why. The metrics millrace_worker_read_* count the reads
// by their place. `millrace nodes show WORKER` has the last read that failed for good.
package worker
