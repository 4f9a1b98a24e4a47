// Package float16 is the unit float16: an IEEE 754 binary16 of two little-endian bytes, as Parquet's FLOAT16 keeps it,
// becomes the float32 of the same value.
//
// # Overview
//
// Every binary16 is a float32, so nothing is rounded: denormals become normal numbers, infinities and the sign of zero
// stay. A NaN keeps its sign and its ten bits, which become the highest bits of the float32's 23.
//
// # Concurrency
//
// The function keeps no state.
//
// # Errors
//
// ErrLength says that a value has another length than 2 bytes. An error of bytecolumn says that the column itself is
// not well formed.
//
// # Debugging
//
// Reference is the definition, by arithmetic.
package float16
