// Package logit is the unit logit: the correctly rounded float32 of ln(t / (1 - t)), t being x within [eps, 1 - eps].
//
// # Overview
//
// 1 - eps is rounded once to float32, x is clamped to both bounds, and the whole expression ln(t / (1 - t)) is rounded
// once, to nearest even. So the result depends on no implementation of the division or of the logarithm. RAP, caffe2
// and ATen, whose formula it is, differ from it and from each other in the last bits. In numbers:
//
//	x NaN                    7fc00000h, whatever NaN came in
//	eps below zero           no clamp, as ATen has it: t is x, and a t outside [0, 1] gives 7fc00000h
//	t = 0, of any sign       -Inf
//	t = 1                    +Inf
//	t = 1/2                  +0
//
// The kernel works in float64, good to 2^-49, and checks whether all numbers within that error round to the same
// float32 (Ziv's test). If they do not, the kernel works in pairs of float64 (package floatpair), good to 2^-90. In
// a sweep over every 17th float32 between 0 and 1 the pairs decided every case. MILLRACE_SWEEP=1 runs the test over
// all of them.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// Bounds returns ErrEps where no clamp is possible.
//
// # Debugging
//
// Reference computes one value with math/big. MILLRACE_SWEEP=1 compares every float32 in (0, 1) (see logit_test.go).
package logit
