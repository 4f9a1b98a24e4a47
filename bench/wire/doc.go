// Package wire measures the drive on the wire: an initiator and a target of package nvme/tcp, over loopback, on a drive
// in memory.
//
// # What is measured
//
// A cell is an operation (4 KiB random reads; 1 MiB sequential reads and writes), a number of I/O queues, which are
// connections, a number of commands outstanding on each, and whether header and data digests are on. The drive is
// plain, its blocks are filled beforehand, and every outstanding command has a buffer of its own. Target and initiator
// have their defaults: what an operator gets. Nothing but Options.Time bounds a cell.
//
// # Raw TCP
//
// Beside each cell, in turns with it in the same run, as many raw connections copy blocks of the same size as fast as
// they can, in one direction: one goroutine writes each, a block a call, and one reads it. What is written lies in
// memory as large as the drive, and what is read goes to as many buffers as commands are outstanding, so raw TCP moves
// the same bytes between the same places. It neither waits for a request nor copies flash into a buffer of its own.
// Both sides of a ratio are measured within a fraction of a second, so it suffers less than a rate from what else the
// machine does; the two processor times suffer least.
//
// # Processor time and allocations
//
// Processor time is the whole process's, user and system, initiator and target together, while commands run.
// Allocations are the process's too, so a background tick now and then leaves a trace of some hundredths where commands
// are few.
//
// # Errors
//
// Errors name the cell.
package wire
