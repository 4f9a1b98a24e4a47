// Package admission decides which connections a server holds when there are more than it can hold: how many in all,
// and how many of one peer.
//
// # Overview
//
// [Peer] names a connection's other side: an IPv4 address, the /64 network of an IPv6 address (a host has all of it),
// or "unix". [Listen] wraps a listener: it closes connections beyond its limits at once, logs that a few times a
// second at most, and goes on when the process has no file descriptors left, which it logs too. [RaiseFiles] gives
// the process as many file descriptors as it may have, and [Connections] returns how many connections a server may
// hold, so that storage, etcd and logs keep their descriptors.
//
// # Concurrency
//
// A listener's Accept and the Close of its connections may be called from any number of goroutines.
//
// # Errors
//
// Accept returns the listener's errors, except those that pass by themselves. [RaiseFiles] wraps the system's.
//
// # Debugging
//
// The log's "connection refused" names the peer and the limit that it met; "no file descriptors left" names the limit
// of the process.
package admission
