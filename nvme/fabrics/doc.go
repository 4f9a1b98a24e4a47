// Package fabrics holds the words of NVMe over Fabrics that are the same on every transport: the Fabrics commands
// Connect, Property Get, Property Set and Disconnect with their builders and parsers, the data of Connect, and the
// entries of the discovery log (Base Specification 2.0, sections 3.1.2, 5.16.1.23 and 6).
//
// # Concurrency
//
// Values are plain data.
//
// # Errors
//
// The statuses of Connect share their codes with statuses of other commands, so they have constants of their own here,
// and Describe names them. Parsers of foreign bytes check the length and never panic.
//
// # Debugging
//
// Name says which Fabrics command an entry holds.
package fabrics
