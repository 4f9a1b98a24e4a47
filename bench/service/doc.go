// Package service measures the service around the drives: the cost of bringing mini-batches from storage nodes to a
// trainer, and the rates that the control plane sustains.
//
// # What is measured
//
// Wire: one trainer (package trainmgr/remote), 1, 2 or 4 nodes, over TCP on loopback, over unix sockets, and over TCP
// with mutual TLS. The nodes are this package's: they hold mini-batches of about 4 MB in memory and make a frame of one
// for each request, checksum included, as a storage node does. No drive preprocesses anything, since that is measured
// elsewhere (bench rm) and would hide the wire on a machine with few cores. Leases and acknowledgements go to a control
// plane in a process of its own.
//
// Beside each cell, in turns with it in the same run, raw connections of the same kind copy blocks of the same size:
// one goroutine writes each, and one reads it. There are as many raw connections as the nodes wrote to at once in a
// first turn. Their blocks go, in turn, into as many buffers as the trainer's mini-batches lay in then, so that both
// sides use the caches alike. Nodes all write the same mini-batch, and raw connections the same block. Other work on
// the machine disturbs the ratio of the two less than either rate; the processor times, of this whole process,
// suffer least.
//
// Ledger: a job of many splits of one mini-batch each; its ranks acknowledge them all, in groups, several calls at a
// time. An acknowledgement counts when the control plane has answered that it is durable. The resident memory of the
// control plane's process is read then.
//
// Failover: a control plane of three processes, a trainer that takes a mini-batch every few milliseconds; the leader
// is killed with kill -9. The failover is over when an acknowledgement is durable again; the report also has the
// trainer's longest wait for a mini-batch meanwhile.
//
// # Errors
//
// [ErrOptions] for options that cannot be measured; other errors name the part.
package service
