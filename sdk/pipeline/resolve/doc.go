// Package resolve applies a pipeline to the columns of a data set.
//
// # Overview
//
// [Pipeline] expands the patterns of a document to columns ([Index]), passes each column through its operators, which
// know then which kind of values they take and yield, and ends it in a tensor: the [Feature] of a [Resolved]. Values
// that several columns make are steps ([Step]), whose inputs are [Operand]. How a column whose partitions differ is
// read is decided by its first operator (reading.go). The rows that a filter chooses are found by a pass of its own
// ([FilterPass]).
//
// [Resolved.Canonical] is the pipeline's part of a job's identity: patterns expanded, defaults filled in, borders as
// bits. Two specs that make the same mini-batches from a dataset have the same canonical form, however they are
// written.
//
// # Concurrency
//
// The package is pure. Any number of goroutines may read a Resolved.
//
// # Errors
//
// Errors are those of package problem. No pipeline and no columns make the package panic.
//
// # Debugging
//
// [Resolved.Notes] returns warnings about settings that are allowed but doubtful, such as a key whose number of
// embeddings is unknown.
package resolve
