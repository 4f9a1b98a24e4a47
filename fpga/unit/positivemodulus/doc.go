// Package positivemodulus is the unit positive_modulus: the remainder that is never negative.
//
// # Overview
//
// PositiveModulus is named by DPP (Table XI) without a definition; ours is floorMod(x, m), m > 0, so that 0 <= result <
// m for every int64 x. For Criteo's unsigned ids it is the plain modulus of DLRM, Piper and PipeRec. The kernels
// multiply by a reciprocal made once (plain Go, AVX2, AVX-512, NEON; package floormod says why that is exact); the
// reference divides. Where m is a power of two, as vocabulary sizes often are, the remainder is the number's lower
// bits, a negative one's too.
//
// # Concurrency
//
// A Modulus is immutable and may be shared.
//
// # Errors
//
// New returns ErrModulus when m is not above zero. Mod cannot fail.
//
// # Debugging
//
// Reference is the definition, a value at a time.
package positivemodulus
