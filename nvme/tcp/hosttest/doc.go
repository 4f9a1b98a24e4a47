// Package hosttest tests the initiator of package tcp against any target: Millrace's own, in process, and the Linux
// kernel's, in a guest (package kerneltest). The expected results are the same for both, except for the differences
// that Target states.
//
// # Overview
//
// Run has one subtest for each thing that a host must get right: data of every size in both directions under everything
// that a connection can be agreed to be, reads that come byte by byte, digests that do not match in either direction,
// connections that are lost at any point, commands that are cancelled or take too long, discovery, refusals, keep
// alive, an orderly end.
//
// Faults are made on the host's side of the connection, by the net.Conn under it, so the target need not know.
//
// # Concurrency
//
// A target is judged by one Run at a time: the subtests write to its namespace 1, and run one after the other.
//
// # Errors
//
// A target that does not do what it should fails the subtest about that.
package hosttest
