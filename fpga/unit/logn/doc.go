// Package logn is the unit log: the correctly rounded float32 natural logarithm of x + c.
//
// # Overview
//
// The sum is rounded once to float32 and its logarithm once to float32, nearest even. That is the one definition that
// depends on no implementation: glibc's logf, NumPy's and Sleef's differ from it and from each other in the last bits
// (docs/operators). In numbers:
//
//	x + c NaN or below zero   7fc00000h, whatever NaN came in
//	x + c = 0, of any sign    -Inf
//	x + c = +Inf              +Inf
//
// The kernel works in float64 with a table of 1/z and ln z and a polynomial, good to 2^-46, and asks whether every
// number that near rounds to the same float32 (Ziv's test). Where that is not so, about once in a million values, it
// works in pairs of float64, good to 2^-90, which decides every float32 there is: the sweep in the tests shows it.
// No result depends on math.Log, whose implementation differs between processors.
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
// Reference computes one value with math/big. MILLRACE_SWEEP=1 compares all 2^32 inputs (see sweep_test.go).
package logn
