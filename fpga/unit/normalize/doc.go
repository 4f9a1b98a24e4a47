// Package normalize is the unit normalize: the correctly rounded float32 of (x - mean) / deviation.
//
// # Overview
//
// NVTabular's Normalize. x is a float32 number; mean and deviation are float64 numbers, and the whole expression, with
// both as they are, is rounded once, to nearest even. So the result depends on no implementation. NVTabular rounds each
// step in float64. In numbers:
//
//	x NaN              7fc00000h, whatever NaN came in
//	x infinite         the same infinity
//	x = mean           +0
//	deviation = 0      x - mean, rounded once: NVTabular's rule for a column of one value
//
// # Concurrency
//
// A Transform is immutable and may be shared.
//
// # Errors
//
// New returns ErrConstants if the deviation is below 0, or a constant is neither 0 nor in the range of normal float32
// numbers. Apply cannot fail.
//
// # Debugging
//
// Reference computes one value in rational numbers.
package normalize
