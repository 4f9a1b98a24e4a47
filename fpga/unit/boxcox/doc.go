// Package boxcox is the unit box_cox: the correctly rounded float32 of Box's and Cox's transform.
//
// # Overview
//
// With t the value that is transformed, the result is ln t if lambda1 is 0, else (t^lambda1 - 1) / lambda1. The whole
// expression is rounded once, to nearest even. Two modes say what t is:
//
//	Caffe2   t is x + lambda2, rounded once to float32, but 1e-6 if that is below it
//	RAP      t is x; where x is not above 0, the result is x unchanged, and lambda2 must be 0
//
// Both formulas are those of public code (caffe2's BatchBoxCox, RAP's boxcox), whose results differ from ours in the
// last bits. In numbers:
//
//	x NaN          7fc00000h, whatever NaN came in
//	t = +Inf       the limit: +Inf, but -1/lambda1 where lambda1 is below 0
//	t = 1          a zero with the sign of lambda1, as both programs have it
//	a result beyond float32 is an infinity; one below its normal numbers is rounded as the others
//
// The kernel works in float64, good to 2^-43, and checks whether all numbers within that error round to the same
// float32 (Ziv's test). If they do not, the kernel works in pairs of float64 (package floatpair), good to 2^-80. If
// the result lies nearer than that to the middle of two float32, as it does for (5000^2 - 1) / 2, integers decide
// whether the result is exactly the middle. If it is not, logarithms in math/big decide on which side of the middle
// it lies.
//
// # Concurrency
//
// A Transform is immutable and may be shared.
//
// # Errors
//
// New returns ErrParams when a parameter is not finite, the mode is unknown, or RAP is given a lambda2.
//
// # Debugging
//
// Reference computes one value with math/big.
package boxcox
