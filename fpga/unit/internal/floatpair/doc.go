// Package floatpair computes in unevaluated sums of two float64, to about 2^-95 of the value.
//
// Units that promise the correctly rounded float32 of an expression compute it in float64 first. Where the float64 lies
// too near to the middle of two float32, they compute it again here, and [Pair.Round32] decides.
//
// The algorithms are Dekker's and Knuth's. They compute the error of a product with math.FMA, so that the results do
// not depend on the processor.
package floatpair
