// Package zeroextend is the unit zero_extend: an int32 id read again as the unsigned number it was.
//
// # Overview
//
// Criteo's hashed ids are unsigned 32-bit numbers that several data sets store as signed int32. A decoder
// sign-extends those; Int64 keeps the low 32 bits, so that -1 is 4294967295 again. It runs in place, and a value that
// is in range already is unchanged. Narrow is the way out: ids of an output that holds them as int32.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// There are none: every int64 has low 32 bits, and Narrow says how far it came.
//
// # Debugging
//
// Reference is the definition, a value at a time.
package zeroextend
