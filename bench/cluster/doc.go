// Package cluster runs a control plane and storage nodes for measurements, each in a process of the program millrace.
//
// # Overview
//
// [Start] starts a control plane and the client of a launcher. [Cluster.StartNode] adds a storage node (the agent of
// package host/node) with one drive in a file, which package workload makes. [Cluster.Take] runs a job and hands its
// mini-batches to a function. Everything is on this machine, in clear or with mutual TLS, and is reached over unix
// sockets or loopback ([Transport]).
//
// [Program.Start] runs any other subcommand that prints one JSON document when it is ready. [Process.ProcessorTime] is
// the CPU time of such a process, so that a measurement can say which process it was spent in.
//
// # Concurrency
//
// A Cluster has one user. A Process may be asked for its times from any goroutine.
//
// # Errors
//
// An error of a process that ended has the last lines that the process printed.
//
// # Debugging
//
// Program.Env is added to the environment of every process, for example GODEBUG.
package cluster
