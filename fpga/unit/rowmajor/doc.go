// Package rowmajor is the drive's formatting of dense output: columns in, rows out.
//
// # Overview
//
// Columns are decoded one by one, and a row of dense may have some hundred columns. If each column were written as it
// comes, every value would touch a cache line of its own. A Tile gathers Columns neighbouring columns, and Write writes
// them row by row, a cache line at a time. That is a transposition; it is done in registers, 16 rows at a time with
// AVX-512 and four with AVX2 and NEON. WriteBFloat16 rounds each row to bfloat16 on the way, where its float32 are in a
// register.
//
// # Concurrency
//
// A Tile belongs to one goroutine at a time.
//
// # Errors
//
// There are none; slices that are too short end in a panic of the runtime, as everywhere.
//
// # Debugging
//
// MILLRACE_CPU=generic takes the plain path.
package rowmajor
