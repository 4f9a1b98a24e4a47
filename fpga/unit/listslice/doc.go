// Package listslice is the unit list_slice: a part of every list, filled up to one length if that is wanted.
//
// # Overview
//
// The part is that of Python's list[start:end]: numbers below 0 count from the list's end, and what lies outside the
// list is left out. NVTabular's ListSlice(n) is start 0 and end n, or start n alone where n is below 0. Cut keeps the
// part.
//
// Pad appends a value to lists until each has one length, which is the length of the part: Length says which that is.
// Lists grow by padding, so MaxLength bounds it.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// Length returns ErrLength for a part whose length depends on the list, and for one above MaxLength. Cut and Pad return
// ErrLengths if lengths are negative, do not add up to the values, or do not fit. They have written nothing then.
//
// # Debugging
//
// Reference is the definition, a list at a time.
package listslice
