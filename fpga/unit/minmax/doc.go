// Package minmax is the unit min_max: the correctly rounded float32 of (x - min) / (max - min).
//
// # Overview
//
// NVTabular's NormalizeMinMax. x is a float32 number; min and max are float64 numbers, and the whole expression, with
// the exact difference of both, is rounded once, to nearest even. So the result depends on no implementation. NVTabular
// rounds each step in float64. Nothing is clamped: an x outside [min, max] gives a result outside [0, 1]. In numbers:
//
//	x NaN          7fc00000h, whatever NaN came in
//	x infinite     the same infinity
//	x = min        +0
//	max = min      x / 2x, NVTabular's rule for a column of one value: 1/2, and 7fc00000h where x is 0 or infinite
//
// # Concurrency
//
// A Transform is immutable and may be shared.
//
// # Errors
//
// New returns ErrBounds if max is below min, or a bound is neither 0 nor in the range of normal float32 numbers. Apply
// cannot fail.
//
// # Debugging
//
// Reference computes one value in rational numbers.
package minmax
