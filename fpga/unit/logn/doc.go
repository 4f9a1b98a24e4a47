// Package logn is the unit log: the correctly rounded float32 natural logarithm of x + c.
//
// # Overview
//
// The sum is rounded once to float32 and its logarithm once to float32, nearest even. That is the one definition that
// depends on no implementation: glibc's logf, NumPy's and Sleef's differ from it and from each other in the last bits
// (docs/operators.md). In numbers:
//
//	x + c NaN or below zero   7fc00000h, whatever NaN came in
//	x + c = 0, of any sign    -Inf
//	x + c = +Inf              +Inf
//
// The kernel works in float64 with a table of 1/z and ln z and a polynomial, good to 2^-46, and asks whether every
// number that near rounds to the same float32 (Ziv's test). Where that is not so, about once in a million values, it
// works in pairs of float64, good to 2^-90, which decides every float32 there is: the sweep in the tests shows it. No
// result depends on math.Log, whose implementation differs between processors.
//
// The vector paths do the same, with what suits them: AVX-512 a table of 16 entries, which fit registers, and a series
// to the ninth power, good to 2^-48; AVX2 no table but a division, s = (z-1)/(z+1), and the series of the logarithm in
// s, good to 2^-49; NEON the plain path's table and series, operation for operation. A block of values that Ziv's test
// stops at goes to the plain path, as a block with anything special does with AVX2 and NEON.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// There are none.
//
// # Debugging
//
// Reference computes one value with math/big. MILLRACE_SWEEP=1 compares all 2^32 inputs on every path (see
// sweep_test.go).
package logn
