// Package cluster carries out what package placement decides: it puts partitions on the drives of storage nodes, has
// nodes copy them from each other, verifies copies, and drains drives.
//
// # Overview
//
// [Open] takes the nodes as a control plane lists them. Everything else is asked of the nodes themselves (host/api/v1):
// a partition is put with one PUT, checked by the node as it comes in and read back before it counts; a copy goes from
// node to node. Work for one drive is done in turn, work for several at once.
//
// # Concurrency
//
// A Cluster may be used from any number of goroutines.
//
// # Errors
//
// Errors name node, drive and partition. [Cluster.Carry] goes on after a failure and returns all of them: what
// succeeded stays.
package cluster
