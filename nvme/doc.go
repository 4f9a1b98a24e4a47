// Package nvme holds the words of the NVM Express protocol: submission and completion queue entries, statuses,
// Identify structures, log pages and features, and the interface through which a host talks to a drive.
//
// Commands are built as for fabrics everywhere, in process too: PSDT 01b and one SGL data descriptor with the length,
// which is 0 for commands without data. Controllers also take commands without data whose data pointer is all zeros. A
// structure is a Go struct with the fields that are used, and Marshal and Unmarshal at the offsets of the NVM Express
// Base Specification 2.x and NVM Command Set Specification 1.x; reserved bytes are written as zeros.
//
// # Concurrency
//
// Values are plain data: no locks, nothing shared. A Conn is safe for concurrent use.
//
// # Errors
//
// Status is an error; errors.Is compares its type and code, and errors.As takes it out of what a Conn returns.
//
// # Debugging
//
// Command, Completion and Status print themselves for a log.
package nvme
