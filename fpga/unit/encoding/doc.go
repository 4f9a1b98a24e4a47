// Package encoding holds the kernels by which values in Parquet's encodings become plain slices: bit-packing,
// dictionary indices, deltas, split bytes, and nulls between values.
//
// # Overview
//
// Package parquet knows the meaning of a page's bytes, the places of runs and blocks and the number of values, and
// checks all of them. This package works on one run of values at a time. Every function is defined on any input:
//
//	Unpack32, Unpack64    values of any bit width; bits past the source's end are 0
//	Gather, GatherNarrow  values by their indices in a dictionary, up to the first index that is none
//	Sum                   deltas to values
//	Join4, Join8          values whose bytes lie in streams (BYTE_STREAM_SPLIT)
//	Spread                values to where nulls leave them
//
// Each has a path of plain Go, the oracle of the others, and paths of assembly for AVX-512 and, where it pays, AVX2.
// All but Sum and Spread have one for NEON, too.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// There are none: Gather returns the number of values that it wrote. A destination or source that is too short for
// what is asked ends in a panic of the runtime, as an index out of range does; package parquet has checked them.
//
// # Debugging
//
// MILLRACE_CPU=generic takes the plain paths.
package encoding
