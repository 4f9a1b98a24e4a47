// Package firstx is the unit firstx: the first n values of every list.
//
// # Overview
//
// It is TorchArrow's firstx: min(n, length) values of each list are kept; n <= 0 leaves empty lists. FirstX runs in
// place over a column of lists stored as lengths, one a row, and the values of all rows in order.
//
// # Concurrency
//
// The function keeps no state.
//
// # Errors
//
// ErrLengths when a length is negative or the lengths do not add up to the values; nothing has been written then.
//
// # Debugging
//
// Reference is the definition, a list at a time.
package firstx
