// Package wire measures the drive on the wire: an initiator and a target of package nvme/tcp, over loopback, on a drive
// in memory.
//
// # What is measured
//
// A cell is an operation (4 KiB random reads; 1 MiB sequential reads and writes), a number of I/O queues, which are
// connections, a number of commands outstanding on each, and whether header and data digests are on. The drive is
// plain, its blocks are filled beforehand, and every outstanding command has a buffer of its own. Target and
// initiator have their defaults, as an operator gets them. Nothing but Options.Time bounds a cell.
//
// # Raw TCP
//
// Beside each cell, in turns with it in the same run, as many raw connections copy blocks of the same size as fast
// as they can, in one direction: one goroutine writes each, a block a call, and one reads it. The bytes to write lie
// in memory as large as the drive, and the bytes read go to as many buffers as commands are outstanding, so raw TCP
// moves the same bytes between the same places. It neither waits for a request nor copies flash into a buffer of its
// own. Both sides of a ratio are measured within a fraction of a second, so other work on the machine disturbs it
// less than a rate; it disturbs the two processor times least.
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
