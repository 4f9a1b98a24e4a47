// Package cluster carries out what package placement decides: it puts partitions on the drives of storage nodes, makes
// nodes copy partitions from each other, verifies copies, and drains drives.
//
// # Overview
//
// [Open] takes the nodes as a control plane lists them. Everything else is asked of the nodes themselves (host/api/v1).
// A file is put on a drive with one PUT: the node checks it as it comes in and reads it back before it counts. A copy
// goes from node to node. Copies for one drive are made one after another, copies for several drives at once.
//
// # Concurrency
//
// A Cluster may be used from any number of goroutines.
//
// # Errors
//
// Errors name node, drive and partition. [Cluster.Carry] goes on after a failure and returns all errors: copies that
// succeeded stay.
//
// # Debugging
//
// `millrace dataset verify` lists the copies and reads each copy whole.
package cluster
