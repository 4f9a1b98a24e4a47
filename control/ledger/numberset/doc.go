// Package numberset holds sets of numbers in the two forms that the ledger keeps: [Runs], for mini-batches and their
// fragments, whose numbers are mostly neighbours, and [Bits], for splits. It is pure.
//
// # Concurrency
//
// A set has one owner. A method that may reuse the memory of its set says so; the others change nothing, except those
// of Bits that set or clear bits.
//
// # Errors
//
// No function fails. A bit behind the last word of Bits is a fault of the caller, and panics.
package numberset
